"""What stands in a figure that was saved as SVG."""

from xml.etree import ElementTree


def texts(path):
    return " | ".join(
        "".join(node.itertext()).strip()
        for node in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    )
