#include "cli/generation_flags.h"

#include "base/json.h"
#include "base/mapped_file.h"

namespace vitrine {

namespace {

Result<std::string> read_text(const std::string& path, const char* flag) {
  VT_TRY(MappedFile file, MappedFile::open(path));
  if (file.text().size() > kMaxConstraintBytes)
    return make_error(ErrorCode::kTooLarge, "{}: {} has {} bytes, allowed are {}", flag, path,
                      file.text().size(), kMaxConstraintBytes);
  return std::string(file.text());
}

}  // namespace

void ConstraintFlags::add(const CommandLine& line) {
  CommandLine group = line.group("constraint", "what the text must be (one of)", 0, 1);
  group.option("--grammar", grammar_file, "file with a grammar in GBNF");
  group.option("--json-schema", schema_file, "file with a JSON schema; {} stands for any JSON");
  group.option("--regex", regex, "regular expression for the whole text");
  group.option("--choice", choices, "one of these texts; may be given several times").repeated();
}

Result<std::optional<ConstraintSpec>> ConstraintFlags::spec() const {
  using Kind = ConstraintSpec::Kind;
  ConstraintSpec out;
  if (!grammar_file.empty()) {
    out.kind = Kind::kGrammar, out.name = "--grammar";
    VT_TRY(out.text, read_text(grammar_file, "--grammar"));
  } else if (!schema_file.empty()) {
    out.kind = Kind::kJsonSchema, out.name = "--json-schema";
    VT_TRY(std::string text, read_text(schema_file, "--json-schema"));
    VT_TRY(out.schema, parse_json(text, schema_file));
  } else if (!regex.empty()) {
    out.kind = Kind::kRegex, out.name = "--regex", out.text = regex;
  } else if (!choices.empty()) {
    out.kind = Kind::kChoice, out.name = "--choice", out.choices = choices;
  } else {
    return std::optional<ConstraintSpec>();
  }
  return std::optional(std::move(out));
}

void GenerationFlags::add(const CommandLine& line) {
  line.option("-n,--max-tokens", max_tokens, {0, 1 << 28}, "tokens to generate at most")
      .show_default();
  line.flag("--ignore-eos", ignore_eos, "go on after an end token");
  line.option("--repetition-detection", repetition,
              "LEAST,MOST,COUNT: end the text once it ends with a pattern of so many tokens, COUNT "
              "times");
  line.option("--stop", stops, "end the text before this string; may be given several times")
      .repeated();
  constraint.add(line);
  sampling.add(line);
  engine.add(line);
}

Result<Request> GenerationFlags::request(std::vector<std::int32_t> prompt, const ModelFile& file,
                                         const Tokenizer* tokenizer, bool beams) const {
  Request r;
  r.prompt = std::move(prompt);
  r.max_tokens = max_tokens;
  r.ignore_eos = ignore_eos;
  // What the model's authors ask for is about draws.
  VT_TRY(r.sampling, sampling.resolve(beams ? GenerationDefaults{} : file.generation(), tokenizer));
  if (beams) VT_RETURN_IF_ERROR(r.sampling.check_beams());
  if (!repetition.empty()) {
    VT_TRY(const auto n, parse_ids(repetition, "--repetition-detection"));
    if (n.size() != 3)
      return make_error(ErrorCode::kInvalid, "--repetition-detection: found {} numbers, allowed 3",
                        n.size());
    r.repetition = RepetitionEnd{.least = n[0], .most = n[1], .count = n[2]};
    VT_RETURN_IF_ERROR(r.repetition->check());
  }
  VT_TRY(auto spec, constraint.spec());
  if (spec) {
    VT_TRY(r.constraint, constraint.source.compile(tokenizer, *spec));
  }
  return r;
}

Result<TextStream> GenerationFlags::text(const Tokenizer& tokenizer,
                                         const std::vector<std::int32_t>& prompt) const {
  VT_TRY(auto stop_strings, StopStrings::make(stops, "--stop"));
  return TextStream(tokenizer, prompt, std::move(stop_strings));
}

}  // namespace vitrine
