-- Hands the client's address on around Caddy, which ends TLS for custom domains and sees HAProxy as its only client. The
-- PROXY protocol would do this, but Caddy takes it from 2.7 on, and Debian 12 has 2.6. So this notes which client each
-- connection to Caddy belongs to, by the port that HAProxy connects from, and Caddy sends that port along with each request.
local client_of_port = {}

-- Caddy's first bytes, the TLS handshake, come before any request of the connection, and replace the port's former client.
core.register_action("note_client", { "tcp-res" }, function(txn)
  client_of_port[txn.f:bc_src_port()] = txn.f:src()
end)

core.register_converters("client_of_port", function(port)
  return client_of_port[tonumber(port)]
end)
