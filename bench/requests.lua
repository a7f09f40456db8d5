-- Sends the requests of a file one after the other, from the number SKIP on. Each stands behind its length as eight digits.
local requests = {}
local file = assert(io.open(os.getenv("REQUESTS"), "rb"))
for head in function() return file:read(8) end do
  requests[#requests + 1] = file:read(tonumber(head))
end
file:close()

local number = tonumber(os.getenv("SKIP"))
request = function()
  number = number + 1
  return requests[(number - 1) % #requests + 1]
end
