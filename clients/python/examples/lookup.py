"""Look up the addresses on the command line: python examples/lookup.py 8.8.8.8"""

import os
import sys

from doorplate_client import Client, DoorplateError


def main() -> int:
    client = Client(os.environ["DOORPLATE_URL"], os.environ["DOORPLATE_API_KEY"])
    for ip in sys.argv[1:]:
        try:
            result = client.lookup(ip)
        except DoorplateError as error:
            print(f"{ip}: {error}", file=sys.stderr)
            return 1
        company = result["company"]
        print(ip, company["name"] if result["company_found"] and company else "no company")
    return 0


if __name__ == "__main__":
    sys.exit(main())
