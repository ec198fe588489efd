"""What both targets share: the kernel IR, the value of each HLO op at an index, and the schedules."""
