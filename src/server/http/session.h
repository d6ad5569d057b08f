// HTTP over one Connection: requests one after the other, each checked, routed and answered.
#pragma once

#include "server/http/connection.h"

namespace vitrine {

// The life of a connection, from the handshake to its close. `refuse`: there are too many; the
// first request is answered with 503.
asio::awaitable<void> serve(std::shared_ptr<Connection> connection, bool refuse);

}  // namespace vitrine
