"""Operations that no kernel computes, written in operations that one does."""
