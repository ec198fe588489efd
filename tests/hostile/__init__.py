"""Users who are clumsy or hostile: a typed error or the right value, never a crash."""
