// TLS from a certificate and a key.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/result.h"

namespace vitrine {

// TLS 1.2 or later, the PEM files' chain and key. Errors name the file.
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(const std::string& certificate,
                                                                    const std::string& key);

}  // namespace vitrine
