"""Texts that a page must not show as they are."""

TEXTS = {
    "script": "<script>document.title = 'broken'; alert(1)</script>",
    "attribute": "\"'><img src=x onerror=alert(1)><a href=javascript:alert(1) title='",
    "ends": "</code></td></table></style></title></body>-->]]>{{ 7 * 7 }}{% raw %}",
    "long": "a" * 100_000,
    "controls": "\x00\x07\x1b[31m\x1b]0;title\x07\r\n\x7f\x9b",
    "directions": "\u202egnp.exe\u202c \u2066\u200f\u061c \u05d0\u05d1\u05d2 \u0645\u0631\u062d",
    "accents": "Z" + "\u0300\u0489\u20dd" * 300,
}
