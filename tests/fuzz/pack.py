#!/usr/bin/env python3
"""Packs a folder of fuzzer inputs into one archive, or unpacks it again.

  tests/fuzz/pack.py pack FOLDER ARCHIVE      # e.g. build-fuzz/corpus/graph tests/fuzz/corpus/graph.tar
  tests/fuzz/pack.py unpack ARCHIVE FOLDER    # FOLDER is made; a file of the same name there is overwritten

Equal files give equal bytes, whoever packs them, when and where: an uncompressed ustar archive (a compressor's bytes
change with its version, and git compresses anyway), files only, sorted by name, without owners, dates or rights of
their own. The archive is replaced at once or not at all.
"""
import io
import os
import sys
import tarfile

LONGEST_NAME = 100  # what one header of ustar holds, and what archive.cc reads


def pack(folder, archive):
    names = sorted(os.listdir(folder))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w', format=tarfile.USTAR_FORMAT) as out:
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.isfile(path) or len(name.encode()) > LONGEST_NAME:
                sys.exit(f'pack.py: {path} is not a file, or its name is longer than {LONGEST_NAME} bytes: move it elsewhere')
            with open(path, 'rb') as file:
                data = file.read()
            entry = tarfile.TarInfo(name)  # mtime, uid and gid 0, no names of owners
            entry.size = len(data)
            entry.mode = 0o644
            out.addfile(entry, io.BytesIO(data))
    with open(archive + '.new', 'wb') as file:
        file.write(packed.getvalue())
    os.replace(archive + '.new', archive)
    return len(names)


def unpack(archive, folder):
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(archive, mode='r:') as packed:
        entries = packed.getmembers()
        for entry in entries:
            if not entry.isfile() or os.path.basename(entry.name) != entry.name:
                sys.exit(f'pack.py: {archive} holds {entry.name}, which is not a file of its own folder: pack it anew')
            with open(os.path.join(folder, entry.name), 'wb') as file:
                file.write(packed.extractfile(entry).read())
    return len(entries)


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ('pack', 'unpack'):
        sys.exit(__doc__)
    action = pack if arguments[0] == 'pack' else unpack
    print(f'{action(arguments[1], arguments[2])} inputs')


if __name__ == '__main__':
    main(sys.argv[1:])
