// GET / and /ui/*: the web page and its files. They hold no data, so they need no key; what the page
// shows it asks of the API, as any other client.
#include "base/utf8.h"
#include "server/api.h"
#include "server/http/negotiation.h"

namespace vitrine {
namespace {

// One of an asset's encodings.
struct Encoded {
  std::string_view name;    // of Content-Encoding; empty: none
  std::string_view suffix;  // of the entity tag: each encoding needs its own
  std::span<const std::byte> bytes;
};

Encoded choose(const Asset& asset, const HttpRequest& request) {
  if (!asset.brotli.empty() && accepts_encoding(request, "br")) return {"br", "-br", asset.brotli};
  if (!asset.gzip.empty() && accepts_encoding(request, "gzip")) return {"gzip", "-gz", asset.gzip};
  return {"", "", asset.raw};
}

// The page runs its own scripts and styles, talks to this server, and stands in no other page.
Headers page_headers(const char* cache) {
  return {{"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
           "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
           "frame-ancestors 'none'"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cache-Control", cache}};
}

Reply not_there(const Api& api, const HttpRequest& request) {
  const bool off = api.page.empty();
  std::string message = fmt::format("{} {}: ", request.method, shortened(request.path, 100));
  message += off ? "the page was switched off (--no-ui)" : "the page has no such file";
  return {ApiError{404, "invalid_request_error", std::move(message), "",
                   off ? "page_off" : "unknown_url"},
          page_headers("no-cache")};
}

asio::awaitable<void> page(Api& api, Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  const Asset* asset = find_asset(api.page, request.path);
  if (asset == nullptr) return send_reply(exchange, not_there(api, request));
  const Encoded encoded = choose(*asset, request);
  Headers headers =
      page_headers(asset->immutable ? "public, max-age=31536000, immutable" : "no-cache");
  std::string etag = fmt::format("\"{}{}\"", asset->etag, encoded.suffix);
  headers.emplace_back("Vary", "Accept-Encoding");
  headers.emplace_back("ETag", etag);
  if (has_etag(request, etag)) return exchange.reply(304, "", "", std::move(headers));
  if (!encoded.name.empty()) headers.emplace_back("Content-Encoding", encoded.name);
  std::string_view body(reinterpret_cast<const char*>(encoded.bytes.data()), encoded.bytes.size());
  return exchange.reply_static(200, asset->content_type, body, std::move(headers));
}

}  // namespace

extern const Endpoint kEndpoint_page;
const Endpoint kEndpoint_page{"GET", {"/", "/ui/*"}, page, true, true};

}  // namespace vitrine
