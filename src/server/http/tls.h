// TLS from a certificate and a key.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace vitrine {

// Fills `context`: TLS 1.2 or later, the PEM files' chain and key. Errors name the file.
Status make_tls_context(const std::string& certificate, const std::string& key,
                        std::optional<boost::asio::ssl::context>& context);

}  // namespace vitrine
