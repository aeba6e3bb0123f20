#!/usr/bin/env python3
"""Makes the dashboard a part of the server.  make_dashboard.py PAGE.html HEADER

The header has the page's text, and a Content-Security-Policy under which a browser runs only that page's own script, and contacts only the server.
"""
import base64
import hashlib
import pathlib
import re
import sys


def hash_of(tag, page):
    """Of the content of the page's only element of that name, in the policy's form."""
    [text] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


page = pathlib.Path(sys.argv[1]).read_text()
policy = "; ".join(["default-src 'none'", "connect-src 'self'", "img-src data:", f"script-src {hash_of('script', page)}",
                    f"style-src {hash_of('style', page)}", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])
assert ')page"' not in page
pathlib.Path(sys.argv[2]).write_text(f'''// Made of {pathlib.Path(sys.argv[1]).name}.
inline constexpr std::string_view kDashboard = R"page({page})page";
inline constexpr std::string_view kDashboardHeads = "Content-Security-Policy: {policy}\\r\\n";
''')
