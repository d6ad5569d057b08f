#include "server/request/prediction.h"

#include "engine/engine.h"
#include "server/request/limits.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

// A text, or the texts of a list of parts, joined.
std::string read_content(JsonFields& fields, const json::value& content) {
  if (content.is_string()) return std::string(content.get_string());
  std::string out;
  const json::array* parts = content.if_array();
  if (parts == nullptr || parts->size() > kMaxPredictionParts) {
    fields.fail(
        "content",
        parts == nullptr
            ? fmt::format("found {}, allowed a string or a list of text parts", describe(content))
            : fmt::format("found {} parts, allowed up to {}", parts->size(), kMaxPredictionParts));
    return out;
  }
  for (std::size_t i = 0; i < parts->size() && !fields.error(); ++i) {
    const std::string at = fmt::format("content[{}]", i);
    const json::object* part = (*parts)[i].if_object();
    if (part == nullptr) {
      fields.fail(at, fmt::format("found {}, allowed an object", describe((*parts)[i])));
      break;
    }
    JsonFields inner(*part, fields.full(at));
    const auto type = inner.text("type");
    if (!inner.error() && (!type || *type != "text"))
      inner.fail("type", fmt::format("found {}, allowed \"text\"",
                                     type ? describe(json::value(*type)) : "nothing"));
    const auto text = inner.text("text");
    if (!inner.error() && !text) inner.fail("text", "found nothing, allowed a string");
    if (auto error = inner.close())
      fields.fail(std::move(*error));
    else
      out += *text;
  }
  return out;
}

}  // namespace

void read_prediction(const Api& api, JsonFields& fields, Request& request) {
  const json::object* object = fields.object("prediction");
  if (object == nullptr || fields.error()) return;
  JsonFields inner(*object, "prediction");
  const auto type = inner.text("type");
  if (!inner.error() && (!type || *type != "content"))
    inner.fail("type", fmt::format("found {}, allowed \"content\"",
                                   type ? describe(json::value(*type)) : "nothing"));
  const json::value* content = inner.any("content");
  std::string text;
  if (!inner.error()) {
    if (content == nullptr)
      inner.fail("content", "found nothing, allowed a string or a list of text parts");
    else
      text = read_content(inner, *content);
  }
  if (!inner.error() && text.size() > kMaxPredictionBytes)
    inner.fail("content",
               fmt::format("found {} bytes, allowed up to {}", text.size(), kMaxPredictionBytes));
  if (auto error = inner.close()) return fields.fail(std::move(*error));
  const bool used = api.engine != nullptr && api.engine->options().spec != SpecMode::kOff;
  if (api.tokenizer == nullptr || !used || !request.speculative) return;
  std::vector<std::int32_t> ids = api.tokenizer->encode(text, {.add_special = false});
  // No answer is longer.
  if (ids.size() > static_cast<std::size_t>(api.context))
    ids.resize(static_cast<std::size_t>(api.context));
  request.prediction = std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
}

}  // namespace vitrine
