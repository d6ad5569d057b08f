#include "server/request/constraint_fields.h"

namespace vitrine {
namespace {

using Kind = ConstraintSpec::Kind;

std::optional<ConstraintSpec> read_response_format(JsonFields& fields) {
  const json::object* format = fields.object("response_format");
  if (format == nullptr) return std::nullopt;
  JsonFields inner(*format, "response_format");
  std::optional<ConstraintSpec> out;
  const std::string type = inner.text("type").value_or("");
  if (type == "json_object") {
    out = ConstraintSpec{.kind = Kind::kJsonObject, .name = "response_format"};
  } else if (type == "json_schema") {
    const std::string where = "response_format.json_schema";
    const json::object* named = inner.object("json_schema");
    if (named == nullptr) {
      fields.fail(bad_field(where, where + ": found nothing, allowed an object with a \"schema\""));
      return std::nullopt;
    }
    JsonFields description(*named, where);
    description.ignore({"name", "description", "strict"});  // it is enforced in any case
    const json::value* schema = description.any("schema");
    if (schema == nullptr) description.fail("schema", "found nothing, allowed a JSON schema");
    if (auto error = description.close()) {
      fields.fail(std::move(*error));
      return std::nullopt;
    }
    out = ConstraintSpec{.kind = Kind::kJsonSchema, .schema = *schema, .name = where + ".schema"};
  } else if (type != "text") {
    inner.fail("type", fmt::format("found {}, allowed \"text\", \"json_object\" or \"json_schema\"",
                                   describe(json::value(type))));
  }
  if (auto error = inner.close()) fields.fail(std::move(*error));
  return out;
}

}  // namespace

std::optional<ConstraintSpec> read_constraint(JsonFields& fields) {
  std::vector<ConstraintSpec> found;
  if (auto format = read_response_format(fields)) found.push_back(std::move(*format));
  if (auto text = fields.text("grammar", kMaxConstraintBytes))
    found.push_back({.kind = Kind::kGrammar, .text = std::move(*text), .name = "grammar"});
  if (auto text = fields.text("regex", kMaxConstraintBytes))
    found.push_back({.kind = Kind::kRegex, .text = std::move(*text), .name = "regex"});
  if (auto list = fields.texts("choice", kMaxConstraintChoices))
    found.push_back({.kind = Kind::kChoice, .choices = std::move(*list), .name = "choice"});
  if (found.size() > 1)
    fields.fail(found[1].name,
                fmt::format("allowed without {} only: one constraint per request", found[0].name));
  if (fields.error() || found.empty()) return std::nullopt;
  return std::move(found[0]);
}

}  // namespace vitrine
