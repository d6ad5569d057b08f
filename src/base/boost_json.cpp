// Boost.JSON, compiled here with another hash for the names in an object. Its own is FNV-1a, whose
// start is the address of the object's table: the low bits are known (alignment), and they alone
// decide how the bytes of a name change the hash. So names of equal length that collide in all 64
// bits, whatever the address, can be made in advance, and an object of n such names costs n * n.
#include <boost/json.hpp>

#include "base/keyed_hash.h"

namespace boost::json::detail {

// Preferred over the library's template, because it is none.
static std::size_t digest(const char* begin, const char* end, std::size_t /*salt*/) noexcept {
  return vitrine::keyed_hash({begin, static_cast<std::size_t>(end - begin)});
}

}  // namespace boost::json::detail

#include <boost/json/src.hpp>
