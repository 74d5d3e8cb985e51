"""Runs a command on a terminal of its own: on-terminal.py ROWS COLUMNS COMMAND...

Stdin is what is typed, stdout is what the terminal shows. Descriptor 3 takes lines "ROWS COLUMNS" for another size; descriptor 4
tells the pid first, and at the end whether the terminal echoes and edits lines again. Ends with the command's code, or 128 + signal.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios


def resize(descriptor, rows, columns):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    rows, columns = int(sys.argv[1]), int(sys.argv[2])
    # Both ends stay open here, so that the state of the terminal can be read when the command has ended.
    master, slave = pty.openpty()
    resize(slave, rows, columns)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for descriptor in (0, 1, 2):
            os.dup2(slave, descriptor)
        os.closerange(3, 64)
        os.execvp(sys.argv[3], sys.argv[3:])
    os.write(4, b"%d\n" % pid)
    sources = [master, 0, 3]
    ended = None
    while True:
        ready, _, _ = select.select(sources, [], [], 0.05)
        for source in ready:
            data = os.read(source, 65536)
            if source == master:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            elif not data:
                sources.remove(source)
            elif source == 0:
                os.write(master, data)
            else:
                for line in data.decode().split("\n"):
                    if line:
                        resize(master, *map(int, line.split()))
        if ended is not None and master not in ready:
            break
        if ended is None:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                ended = os.waitstatus_to_exitcode(status)
    flags = termios.tcgetattr(slave)[3]
    sane = bool(flags & termios.ECHO) and bool(flags & termios.ICANON) and bool(flags & termios.ISIG)
    os.write(4, b"sane\n" if sane else b"raw\n")
    sys.exit(ended if ended >= 0 else 128 - ended)


main()
