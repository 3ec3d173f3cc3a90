#!/usr/bin/env python3
"""What tools/draw-map draws."""
import importlib.machinery
import importlib.util
import pathlib
import unittest
import xml.etree.ElementTree

TOOL = pathlib.Path(__file__).parents[2] / "tools/draw-map"
loader = importlib.machinery.SourceFileLoader("draw_map", str(TOOL))
draw_map = importlib.util.module_from_spec(importlib.util.spec_from_loader("draw_map", loader))
loader.exec_module(draw_map)


def room(*may):
    return {"for": "a purpose of several words & more", "may": {arrow: {} for arrow in may}}


TABLE = {"low": room(), "mid": room("low"), "mid/deep": room("mid"), "top": room("mid", "low")}
# As many as there may be: eleven modules, each on the one before, with four rooms each.
LARGE = {f"m{m}/r{r}": room(*[f"m{m - 1}"] * (m > 0)) for m in range(11) for r in range(4)}


class Map(unittest.TestCase):
    def test_leaves_out_arrows_that_follow_from_others(self):
        arrows = draw_map.module_arrows(TABLE)
        self.assertEqual(arrows, {"low": set(), "mid": {"low"}, "top": {"mid", "low"}})
        self.assertEqual(draw_map.reduced(arrows), {"low": set(), "mid": {"low"}, "top": {"mid"}})

    def test_a_module_stands_above_all_that_it_includes(self):
        self.assertEqual(draw_map.layers(draw_map.module_arrows(TABLE)), [["low"], ["mid"], ["top"]])

    def test_boxes_neither_overlap_nor_leave_the_picture(self):
        for table in (TABLE, LARGE, draw_map.rooms.ROOMS):
            boxes, height = draw_map.arranged(table, draw_map.module_arrows(table))
            placed = list(boxes.values())
            for number, a in enumerate(placed):
                self.assertTrue(0 <= a.x and a.x + a.width <= draw_map.WIDTH and a.y + a.height <= height)
                for b in placed[number + 1:]:
                    apart = (a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y
                             or b.y + b.height <= a.y)
                    self.assertTrue(apart, (a.module, b.module))

    def test_draws_every_room_and_arrow_in_well_formed_xml(self):
        picture = draw_map.draw(TABLE)
        xml.etree.ElementTree.fromstring(picture)
        self.assertEqual(picture.count('class="room"'), len(TABLE))
        self.assertEqual(picture.count("marker-end"), 2)


if __name__ == "__main__":
    unittest.main()
