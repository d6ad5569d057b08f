#include <algorithm>

#include "server/http/http.h"

namespace vitrine {
namespace {

bool method_matches(const Route& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

// The more exact, the greater.
int exactness(std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  return star == pattern.npos ? 2 : star + 1 < pattern.size() ? 1 : 0;
}

// Of the routes that match the path, those that are the most exact.
template <typename F>
void for_each_route(const std::vector<Route>& routes, std::string_view path, F f) {
  int most = 0;
  for (const Route& route : routes)
    if (route_argument(route.path, path)) most = std::max(most, exactness(route.path));
  for (const Route& route : routes)
    if (exactness(route.path) == most && route_argument(route.path, path)) f(route);
}

}  // namespace

std::optional<std::string_view> route_argument(std::string_view pattern, std::string_view path) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) {
    if (path != pattern) return std::nullopt;
    return std::string_view();
  }
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (path.size() <= before.size() + after.size()) return std::nullopt;
  if (!path.starts_with(before) || !path.ends_with(after)) return std::nullopt;
  path.remove_prefix(before.size()), path.remove_suffix(after.size());
  if (!after.empty() && path.find('/') != path.npos) return std::nullopt;
  return path;
}

const Route* find_route(const std::vector<Route>& routes, std::string_view method,
                        std::string_view path) {
  const Route* found = nullptr;
  for_each_route(routes, path, [&](const Route& route) {
    if (found == nullptr && method_matches(route, method)) found = &route;
  });
  return found;
}

std::string allowed_methods(const std::vector<Route>& routes, std::string_view path) {
  std::string out;
  for_each_route(routes, path, [&](const Route& route) {
    if (out.find(route.method) != out.npos) return;
    if (!out.empty()) out += ", ";
    out += route.method;
    if (route.method == "GET") out += ", HEAD";
  });
  return out;
}

}  // namespace vitrine
