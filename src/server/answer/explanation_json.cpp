#include "server/answer/explanation_json.h"

#include <cmath>

namespace vitrine {
namespace {

template <typename... Args>
void write(std::string& to, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(to), format, std::forward<Args>(args)...);
}

// "name":[..]
template <typename List, typename One>
void write_list(std::string& to, const char* name, const List& list, One&& one) {
  write(to, ",\"{}\":[", name);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) to += ',';
    one(list[i]);
  }
  to += ']';
}

std::string id_text(std::int32_t id) { return id < 0 ? "null" : std::to_string(id); }
// Scores of a file may be infinite, which JSON cannot write.
std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

void write_word(std::string& to, const ExplainedWord& word) {
  auto placed = [&](const PlacedToken& token) {
    write(to, "[{},{},{}]", token.begin, token.end, id_text(token.id));
  };
  write(to, R"({{"begin":{},"end":{},"way":"{}")", word.begin, word.end, word_way_name(word.way));
  if (word.way == WordWay::kMerges) {
    write_list(to, "start", word.start, placed);
    write_list(to, "merges", word.merges, [&](const DoneMerge& merge) {
      write(to, "[{},{},{},{}]", merge.left, merge.right, number_text(merge.rank), merge.id);
    });
  } else if (word.way == WordWay::kLattice) {
    write_list(to, "candidates", word.candidates, [&](const TokenCandidate& c) {
      write(to, "[{},{},{},{},{},{}]", c.begin, c.end, id_text(c.id), number_text(c.score),
            number_text(c.total), c.chosen);
    });
    write(to, ",\"left_out\":{}", word.left_out);
  } else if (word.way == WordWay::kMatches || word.way == WordWay::kUnknown) {
    write_list(to, "matches", word.start, placed);
  }
  write_list(to, "ids", word.tokens, [&](const PlacedToken& token) { write(to, "{}", token.id); });
  write_list(to, "bytes", word.tokens,
             [&](const PlacedToken& token) { write(to, "[{},{}]", token.begin, token.end); });
  to += '}';
}

std::size_t bytes_of(const ExplainedWord& word) {
  return sizeof(word) + (word.start.capacity() + word.tokens.capacity()) * sizeof(PlacedToken) +
         word.merges.capacity() * sizeof(DoneMerge) +
         word.candidates.capacity() * sizeof(TokenCandidate);
}

void add_spans(Pieces& out, const char* name, std::shared_ptr<const PromptSpans> held,
               const std::vector<PromptSpan>& list) {
  out.add(fmt::format(",\"{}\":", name));
  out.list(list.size(), [held = std::move(held), &list](std::string& to, std::size_t i) {
    const PromptSpan& span = list[i];
    write(to, R"({{"begin":{},"end":{},"message":{},"kind":"{}"}})", span.begin, span.end,
          span.message < 0 ? "null" : std::to_string(span.message), span_kind_name(span.kind));
  });
}

}  // namespace

std::size_t add_explanation(Pieces& out, TextExplanation explanation) {
  auto told = std::make_shared<const TextExplanation>(std::move(explanation));
  std::string around;
  write_list(around, "prefix", told->prefix, [&](std::int32_t id) { write(around, "{}", id); });
  write_list(around, "suffix", told->suffix, [&](std::int32_t id) { write(around, "{}", id); });
  out.add(",\"normalized\":").text({told, &told->normalized}).add(std::move(around));
  out.add(",\"words\":").list(told->words.size(), [told](std::string& to, std::size_t i) {
    write_word(to, told->words[i]);
  });
  std::size_t bytes = told->normalized.size() + told->sources.capacity() * sizeof(PlacedToken);
  for (const ExplainedWord& word : told->words) bytes += bytes_of(word);
  return bytes;
}

std::size_t add_spans(Pieces& out, PromptSpans spans) {
  auto held = std::make_shared<const PromptSpans>(std::move(spans));
  add_spans(out, "spans", held, held->bytes);
  add_spans(out, "token_spans", held, held->tokens);
  out.add(",\"token_bytes\":").list(held->places.size(), [held](std::string& to, std::size_t i) {
    write(to, "[{},{}]", held->places[i].begin, held->places[i].end);
  });
  return (held->bytes.capacity() + held->tokens.capacity()) * sizeof(PromptSpan) +
         held->places.capacity() * sizeof(ByteSpan);
}

}  // namespace vitrine
