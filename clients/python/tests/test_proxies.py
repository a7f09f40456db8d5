import json
import pathlib
import unittest
import unittest.mock
from urllib.parse import urlsplit
from urllib.request import Request

from doorplate_client._transport import _opener

# The TypeScript client's tests read them too.
CASES = pathlib.Path(__file__).parents[3] / "test/clients/proxies/cases.json"


class ProxiesTest(unittest.TestCase):
    def test_finds_the_proxy_that_the_typescript_client_finds(self) -> None:
        for case in json.loads(CASES.read_text()):
            with unittest.mock.patch.dict("os.environ", case["env"], clear=True), self.subTest(**case):
                _opener.cache_clear()
                self.addCleanup(_opener.cache_clear)
                request = Request(case["url"])
                scheme = request.type
                for handler in _opener().process_request.get(scheme, []) + _opener().handle_open.get(scheme, []):
                    if type(handler).__name__ == "ProxyHandler":
                        getattr(handler, f"{scheme}_open")(request)
                used = request.host if request.has_proxy() or request.host != urlsplit(case["url"]).netloc else None
                wanted = case["proxy"]
                self.assertEqual(used, None if wanted is None else urlsplit(wanted).netloc)
