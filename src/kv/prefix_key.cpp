#include "kv/prefix_key.h"

#include "base/keyed_hash.h"

namespace vitrine {
namespace {

using PageHash = SipHash<2, 4, true>;

PrefixKey finish(PageHash& hash) {
  std::uint64_t a = hash.finish();
  return {a, hash.finish_second()};
}

}  // namespace

PrefixHasher::PrefixHasher() : secret_(draw_secret()) {}

PrefixKey PrefixHasher::root(std::string_view salt) const {
  PageHash hash(secret_);
  hash.add(salt.data(), salt.size());
  return finish(hash);
}

PrefixKey PrefixHasher::extend(const PrefixKey& parent,
                               std::span<const std::int32_t> tokens) const {
  PageHash hash(secret_);
  hash.add(parent.a);
  hash.add(parent.b);
  hash.add(tokens.data(), tokens.size_bytes());
  return finish(hash);
}

}  // namespace vitrine
