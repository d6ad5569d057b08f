// Who may ask: API keys, the Host header (against DNS rebinding), the Origin header (against other
// sites' scripts). Nothing here depends on the path; the session decides by the routed handler.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/http.h"

namespace vitrine {

struct ApiKey {
  std::array<unsigned char, 32> digest;  // SHA-256; the key itself is not kept
  std::string name;                      // keys of one name are one tenant
  KeyRights rights;
};

class ApiKeys {
 public:
  // Lines "KEY [NAME [WEIGHT]] [OPTION=VALUE ..]"; '#' starts a comment line. At least one key.
  // Options: role (user, operator), weight, min_priority, max_parallel_requests, rpm_limit,
  // tpm_limit. Errors name the line and never show a word of it, since that may be a key.
  static Result<ApiKeys> load(const std::string& path);
  static Result<ApiKeys> parse(std::string_view text, std::string_view what);

  bool empty() const { return keys_.empty(); }
  // Compares digests with every key, in time that does not depend on which matches.
  const ApiKey* find(std::string_view key) const;
  // By the request's "Authorization: Bearer KEY" or "x-api-key".
  const ApiKey* authenticate(const HttpRequest& request) const;

 private:
  std::vector<ApiKey> keys_;
};

// NAME, NAME:PORT or [V6]:PORT in lower case; nothing when it is anything else.
struct Authority {
  std::string host, port;  // port empty: none was given
};
std::optional<Authority> parse_authority(std::string_view text);

class AccessRules {
 public:
  // `bound_address` is the literal that the server listens on.
  static Result<AccessRules> make(const HttpOptions& options, const std::string& bound_address);

  // `host` is the value of the Host header: NAME or NAME:PORT.
  bool host_allowed(std::string_view host) const;
  // An Origin that is the server's own (by its Host, and https only where the server itself speaks
  // TLS) or named by the options.
  bool origin_allowed(std::string_view origin, std::string_view host) const;
  // What Access-Control-Allow-Origin says to `origin`; empty: nothing.
  std::string cors_origin(std::string_view origin) const;

 private:
  std::vector<Authority> allowed_;  // without a port: with any
  std::vector<std::string> origins_;
  bool any_origin_ = false;
  bool tls_ = false;
  // Any IP literal is allowed: the server listens beyond loopback.
  bool literals_ = false;
};

}  // namespace vitrine
