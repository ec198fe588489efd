"""What a reshape does, dimension by dimension: it splits and joins runs of neighbouring dimensions."""

from onnxla.hlo.types import Shape


def reshape_groups(before: Shape, after: Shape) -> list[tuple[Shape, Shape]] | None:
    """The smallest runs of dimensions of `before` and `after` that hold the same elements, in order.

    The reshape happens within each run. None for tensors without elements.
    """
    if 0 in before:
        return None
    groups: list[tuple[Shape, Shape]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        inside, outside = [], []
        left = right = 1
        if i < len(before):
            inside, left, i = [i], before[i], i + 1
        if j < len(after) and (left != 1 or not inside):
            outside, right, j = [j], after[j], j + 1
        elif j < len(after) and after[j] == 1:
            outside, j = [j], j + 1
        while left != right:
            if left < right:
                inside.append(i)
                left, i = left * before[i], i + 1
            else:
                outside.append(j)
                right, j = right * after[j], j + 1
        groups.append((tuple(inside), tuple(outside)))
    return groups
