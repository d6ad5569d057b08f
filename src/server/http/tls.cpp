#include "server/http/tls.h"

#include <openssl/ssl.h>

namespace vitrine {

namespace ssl = boost::asio::ssl;

Result<std::shared_ptr<ssl::context>> make_tls_context(const std::string& certificate,
                                                       const std::string& key) {
  boost::system::error_code error;
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Idle connections keep no record buffers.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  context->use_certificate_chain_file(certificate, error);
  if (error)
    return make_error(ErrorCode::kInvalid, "TLS certificate {}: {}", certificate, error.message());
  // Without this OpenSSL would ask the terminal for the password of an encrypted key.
  context->set_password_callback([](std::size_t, ssl::context::password_purpose) { return ""; },
                                 error);
  context->use_private_key_file(key, ssl::context::pem, error);
  if (error) return make_error(ErrorCode::kInvalid, "TLS key {}: {}", key, error.message());
  if (SSL_CTX_check_private_key(native) != 1)
    return make_error(ErrorCode::kInvalid, "TLS key {} does not belong to certificate {}", key,
                      certificate);
  return context;
}

}  // namespace vitrine
