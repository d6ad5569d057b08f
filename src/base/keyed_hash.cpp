#include "base/keyed_hash.h"

#include <sys/random.h>

#include "base/check.h"

namespace vitrine {

HashSecret draw_secret() {
  HashSecret out;
  VT_CHECK(getrandom(out.data(), sizeof out, 0) == sizeof out, "the system gives no random bytes");
  return out;
}

std::uint64_t keyed_hash(std::string_view bytes) {
  SipHash<1, 3> hash(process_secret());
  hash.add(bytes.data(), bytes.size());
  return hash.finish();
}

}  // namespace vitrine
