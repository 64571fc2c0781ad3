"""Notebooks become pages with their text, code, tables and figures."""

import base64
import json

from website.notebook import markdown


def test_a_notebook_keeps_its_output(tmp_path):
    image = base64.b64encode(b"pixels").decode()
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Words."]},
        {
            "cell_type": "code",
            "source": "a = 1\na",
            "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["1"]}}],
        },
        {
            "cell_type": "code",
            "source": ["print(2)"],
            "outputs": [{"output_type": "stream", "text": ["2\n"]}],
        },
        {
            "cell_type": "code",
            "source": ["t"],
            "outputs": [
                {"output_type": "execute_result", "data": {"text/html": "<p>\n\n</p>", "text/plain": "t"}},
            ],
        },
        {
            "cell_type": "code",
            "source": ["draw()"],
            "outputs": [{"output_type": "display_data", "data": {"image/png": image, "text/plain": "f"}}],
        },
        {"cell_type": "code", "source": [], "outputs": []},
    ]
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    page, images = markdown(path)
    assert page == (
        "# Title\n\nWords.\n\n````python\na = 1\na\n````\n\n````text\n1\n````\n\n"
        "````python\nprint(2)\n````\n\n````text\n2\n````\n\n"
        "````python\nt\n````\n\n<p>\n</p>\n\n````python\ndraw()\n````\n\n![Figure 1](book_1.png)\n"
    )
    assert images == {"book_1.png": b"pixels"}
