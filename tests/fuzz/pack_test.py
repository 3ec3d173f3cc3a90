#!/usr/bin/env python3
"""pack.py: what is packed comes back, and equal inputs give equal bytes."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def call(*arguments):
    return subprocess.run([sys.executable, HERE / 'pack.py', *arguments], capture_output=True, text=True)


class Pack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def write(self, folder, names):
        (self.root / folder).mkdir()
        for name in names:
            (self.root / folder / name).write_bytes(name.encode() * 200 + b'\0\r\n\xff')

    def test_committed_archives_come_back_to_the_byte(self):
        archives = sorted((HERE / 'corpus').glob('*.tar'))
        self.assertEqual([archive.stem for archive in archives], ['client', 'frames', 'graph', 'metrics', 'topology'])
        for archive in archives:
            unpacked = self.root / archive.stem
            self.assertEqual(call('unpack', archive, unpacked).returncode, 0)
            self.assertEqual(call('pack', unpacked, self.root / archive.name).returncode, 0)
            self.assertEqual((self.root / archive.name).read_bytes(), archive.read_bytes(), archive)

    def test_neither_date_nor_rights_nor_order_change_the_bytes(self):
        self.write('a', ['one', 'two', 'three'])
        self.write('b', ['three', 'two', 'one'])
        os.utime(self.root / 'b' / 'one', (1, 1))
        os.chmod(self.root / 'b' / 'two', 0o600)
        for folder in ('a', 'b'):
            self.assertEqual(call('pack', self.root / folder, self.root / (folder + '.tar')).stdout, '3 inputs\n')
        self.assertEqual((self.root / 'a.tar').read_bytes(), (self.root / 'b.tar').read_bytes())

    def test_what_is_packed_comes_back(self):
        self.write('a', ['one', 'two'])
        call('pack', self.root / 'a', self.root / 'a.tar')
        self.assertEqual(call('unpack', self.root / 'a.tar', self.root / 'c').stdout, '2 inputs\n')
        self.assertEqual({p.name: p.read_bytes() for p in (self.root / 'c').iterdir()},
                         {p.name: p.read_bytes() for p in (self.root / 'a').iterdir()})

    def test_a_folder_in_the_folder_and_a_long_name_are_refused(self):
        self.write('a', ['one'])
        (self.root / 'a' / 'folder').mkdir()
        self.write('b', ['x' * 101])
        for folder in ('a', 'b'):
            refused = call('pack', self.root / folder, self.root / 'no.tar')
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn('is not a file, or its name is longer', refused.stderr)
        self.assertFalse((self.root / 'no.tar').exists())


if __name__ == '__main__':
    unittest.main()
