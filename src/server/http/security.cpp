#include "server/http/security.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "server/http/head.h"

namespace vitrine {
namespace {

constexpr std::size_t kMaxKeyFile = 1 << 20;
constexpr double kMaxWeight = 1000;

std::array<unsigned char, 32> sha256(std::string_view text) {
  std::array<unsigned char, 32> out;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == line.npos) return out;
    std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
}

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

constexpr int kMostParallel = 1'000'000, kMostRequests = 1'000'000'000;  // at once; a minute
constexpr std::int64_t kMostTokens = 1'000'000'000'000;                  // a minute

std::string allowed_options() {
  return fmt::format(
      "KEY [NAME [WEIGHT]] [OPTION=VALUE ..]: role=user or role=operator, weight=above 0 to {}, "
      "min_priority={} to {}, max_parallel_requests=1 to {}, rpm_limit=1 to {}, tpm_limit=1 to {}",
      kMaxWeight, -kMaxKeyPriority, kMaxKeyPriority, kMostParallel, kMostRequests, kMostTokens);
}

template <typename T>
bool read_number(std::string_view text, T min, T max, T& out) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (!(value >= min && value <= max)) return false;
  out = value;
  return true;
}

bool set_option(KeyRights& rights, std::string_view name, std::string_view value) {
  if (name == "role") {
    rights.is_operator = value == "operator";
    return value == "operator" || value == "user";
  }
  if (name == "weight") return read_number(value, 1e-6, kMaxWeight, rights.weight);
  if (name == "min_priority")
    return read_number(value, -kMaxKeyPriority, kMaxKeyPriority, rights.min_priority);
  if (name == "max_parallel_requests")
    return read_number(value, 1, kMostParallel, rights.max_parallel_requests);
  if (name == "rpm_limit") return read_number(value, 1, kMostRequests, rights.rpm_limit);
  return name == "tpm_limit" && read_number(value, std::int64_t{1}, kMostTokens, rights.tpm_limit);
}

Result<ApiKey> parse_key(std::string_view line, std::string_view what, int number) {
  auto fail = [&](std::string_view problem) {
    return make_error(ErrorCode::kMalformed, "{}: line {}: {}", what, number, problem);
  };
  auto parts = words(line);
  if (!std::all_of(parts.begin(), parts.end(), printable))
    return fail("a character that is not printable ASCII");
  ApiKey key{sha256(parts[0]), {}, {.is_operator = false, .min_priority = 0}};
  // An operator's priority is its own affair, unless the line says otherwise.
  if (std::find(parts.begin() + 1, parts.end(), "role=operator") != parts.end())
    key.rights.min_priority = -kMaxKeyPriority;
  std::size_t named = 1;  // words without a '=': KEY, NAME, WEIGHT
  for (std::size_t at = 1; at < parts.size(); ++at) {
    const std::size_t equals = parts[at].find('=');
    bool good = true;
    if (equals != parts[at].npos)
      good = set_option(key.rights, parts[at].substr(0, equals), parts[at].substr(equals + 1));
    else if (at != named++ || at > 2)
      good = false;
    else if (at == 2)
      good = set_option(key.rights, "weight", parts[at]);
    else if (parts[at].size() > 64)
      return fail("the name has over 64 characters");
    else
      key.name = std::string(parts[at]);
    if (!good) return fail(fmt::format("word {}: allowed {}", at + 1, allowed_options()));
  }
  return key;
}

bool is_v4(const std::string& host) {
  in_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

// With brackets, as in a Host header.
bool is_v6(const std::string& host, in6_addr* address) {
  if (host.size() < 4 || host.front() != '[' || host.back() != ']') return false;
  return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), address) == 1;
}

bool is_loopback(const std::string& host) {
  in6_addr v6;
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  if (is_v4(host)) return host.starts_with("127.");
  return is_v6(host, &v6) && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool is_literal(const std::string& host) {
  in6_addr v6;
  return is_v4(host) || is_v6(host, &v6);
}

bool same_host(const std::string& a, const std::string& b) {
  in6_addr x, y;
  if (is_v6(a, &x) && is_v6(b, &y)) return IN6_ARE_ADDR_EQUAL(&x, &y);
  return a == b;
}

std::string bracketed(const std::string& address) {
  bool bare_v6 = address.find(':') != address.npos && address.front() != '[';
  return bare_v6 ? "[" + address + "]" : address;
}

}  // namespace

std::optional<Authority> parse_authority(std::string_view text) {
  Authority out;
  std::size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos) return std::nullopt;
    ++end;
  }
  end = std::min(end, text.size());
  out.host = to_lower(text.substr(0, end));
  auto rest = text.substr(end);
  if (!rest.empty()) {
    if (rest[0] != ':' || rest.size() < 2 || rest.size() > 6) return std::nullopt;
    out.port = std::string(rest.substr(1));
    if (out.port.find_first_not_of("0123456789") != out.port.npos) return std::nullopt;
  }
  in6_addr v6;
  if (out.host.starts_with('[')) return is_v6(out.host, &v6) ? std::optional(out) : std::nullopt;
  bool clean =
      !out.host.empty() && out.host.size() <= 255 &&
      out.host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") == out.host.npos;
  return clean ? std::optional(out) : std::nullopt;
}

Result<ApiKeys> ApiKeys::load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return make_error(ErrorCode::kNotFound, "API keys: cannot read {}", path);
  std::string text(kMaxKeyFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.fail() && !in.eof()))
    return make_error(ErrorCode::kUnavailable, "API keys: cannot read {}", path);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxKeyFile)
    return make_error(ErrorCode::kTooLarge, "API keys: {} has over {} bytes", path, kMaxKeyFile);
  return parse(text, path);
}

Result<ApiKeys> ApiKeys::parse(std::string_view text, std::string_view what) {
  ApiKeys out;
  int number = 0;
  std::vector<std::pair<std::size_t, int>> unnamed;  // index, line
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    auto start = line.find_first_not_of(" \t\r");
    if (start == line.npos || line[start] == '#') continue;
    VT_TRY(auto key, parse_key(line, what, number));
    if (key.name.empty()) unnamed.emplace_back(out.keys_.size(), number);
    for (const auto& other : out.keys_)
      if (other.digest == key.digest)
        return make_error(ErrorCode::kMalformed, "{}: line {}: the same key as that of {}", what,
                          number, other.name.empty() ? "another line" : other.name);
    out.keys_.push_back(std::move(key));
  }
  // By the key itself: the name must stay its own when lines are added or go (SIGHUP).
  for (auto [index, line] : unnamed) {
    const auto& digest = out.keys_[index].digest;
    std::string name = "key-";
    for (int i = 0; i < 4; ++i) name += fmt::format("{:02x}", static_cast<unsigned>(digest[i]));
    for (const auto& other : out.keys_)
      if (other.name == name)
        return make_error(ErrorCode::kMalformed,
                          "{}: line {}: without a name the key is {}, which is another's name",
                          what, line, name);
    out.keys_[index].name = name;
  }
  if (out.keys_.empty())
    return make_error(ErrorCode::kMalformed, "{}: there is no key in it", what);
  return out;
}

const ApiKey* ApiKeys::find(std::string_view key) const {
  auto digest = sha256(key);
  const ApiKey* found = nullptr;
  for (const auto& candidate : keys_) {
    bool equal = CRYPTO_memcmp(candidate.digest.data(), digest.data(), digest.size()) == 0;
    found = equal ? &candidate : found;
  }
  return found;
}

const ApiKey* ApiKeys::authenticate(const HttpRequest& request) const {
  auto count = [&](std::string_view name) {
    return std::count_if(request.headers.begin(), request.headers.end(),
                         [&](const auto& header) { return header.first == name; });
  };
  if (count("authorization") > 1 || count("x-api-key") > 1) return nullptr;
  auto authorization = request.header("authorization");
  if (authorization.empty()) {
    auto key = request.header("x-api-key");
    return key.empty() ? nullptr : find(key);
  }
  constexpr std::string_view kScheme = "Bearer ";
  if (!equals_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) return nullptr;
  auto key = authorization.substr(kScheme.size());
  key.remove_prefix(std::min(key.find_first_not_of(' '), key.size()));
  return key.empty() ? nullptr : find(key);
}

Result<AccessRules> AccessRules::make(const HttpOptions& options,
                                      const std::string& bound_address) {
  AccessRules out;
  out.tls_ = !options.tls_certificate.empty();
  in6_addr v6;
  auto bound = to_lower(bracketed(bound_address));
  bool wildcard = bound == "0.0.0.0" || (is_v6(bound, &v6) && IN6_IS_ADDR_UNSPECIFIED(&v6));
  out.literals_ = !is_loopback(bound);
  if (!wildcard) {
    out.allowed_.push_back({bound, ""});
    if (auto name = parse_authority(bracketed(options.host)))
      out.allowed_.push_back({name->host, ""});
  }
  for (const auto& text : options.allow_hosts) {
    auto authority = parse_authority(text);
    if (!authority) authority = parse_authority(bracketed(text));
    if (!authority)
      return make_error(ErrorCode::kInvalid, "allow-host '{}': expected NAME or NAME:PORT", text);
    out.allowed_.push_back(*authority);
  }
  for (const auto& origin : options.cors_origins) {
    auto text = to_lower(origin);
    if (text.ends_with('/')) text.pop_back();
    out.any_origin_ |= text == "*";
    auto slashes = text.find("://");
    if (text != "*" &&
        (slashes == text.npos || slashes == 0 || !parse_authority(text.substr(slashes + 3))))
      return make_error(ErrorCode::kInvalid,
                        "CORS origin '{}': expected '*' or SCHEME://NAME or SCHEME://NAME:PORT",
                        origin);
    out.origins_.push_back(std::move(text));
  }
  return out;
}

bool AccessRules::host_allowed(std::string_view host) const {
  auto authority = parse_authority(host);
  if (!authority) return false;
  if (is_loopback(authority->host) || (literals_ && is_literal(authority->host))) return true;
  return std::any_of(allowed_.begin(), allowed_.end(), [&](const Authority& allowed) {
    return same_host(allowed.host, authority->host) &&
           (allowed.port.empty() || allowed.port == authority->port);
  });
}

bool AccessRules::origin_allowed(std::string_view origin, std::string_view host) const {
  if (!cors_origin(origin).empty()) return true;
  auto text = to_lower(origin);
  const std::string_view scheme = tls_ ? "https://" : "http://", default_port = tls_ ? "443" : "80";
  if (!text.starts_with(scheme)) return false;
  auto theirs = parse_authority(std::string_view(text).substr(scheme.size()));
  auto ours = parse_authority(host);
  if (!theirs || !ours) return false;
  if (theirs->port.empty()) theirs->port = default_port;
  if (ours->port.empty()) ours->port = default_port;
  return same_host(theirs->host, ours->host) && theirs->port == ours->port;
}

std::string AccessRules::cors_origin(std::string_view origin) const {
  if (origin.empty()) return {};
  if (any_origin_) return "*";
  auto text = to_lower(origin);
  if (std::find(origins_.begin(), origins_.end(), text) == origins_.end()) return {};
  return std::string(origin);
}

}  // namespace vitrine
