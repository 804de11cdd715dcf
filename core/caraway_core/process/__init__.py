"""The process and its machine: logs, cores, disks, directories, and how it starts and ends."""
