"""The command ``doorplate-client``: the companies behind the addresses of logs."""
