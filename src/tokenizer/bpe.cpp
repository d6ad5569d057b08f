#include "tokenizer/bpe.h"

#include <bit>
#include <cmath>

#include "base/utf8.h"
#include "tokenizer/explanation.h"
#include "tokenizer/merging.h"

namespace vitrine {
namespace {

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

// Whether a space mark only ever begins a token (or follows another mark). Then no merge goes
// across the start of a marked word, and words can be merged one by one, which uses the CPU caches
// better.
bool marks_begin_tokens(const Vocab& vocab) {
  if (vocab.find_plain(kSpaceMark) == kNoToken) return false;
  for (std::int32_t id = 0; id < vocab.size(); ++id) {
    if (!vocab.has(id) || vocab.is_special(id)) continue;
    std::string_view content = vocab.content(id);
    while (content.starts_with(kSpaceMark)) content.remove_prefix(kSpaceMark.size());
    if (content.find(kSpaceMark) != std::string_view::npos) return false;
  }
  return true;
}

// A score's bits as an unsigned number that ascends with it, then inverted.
std::uint32_t rank_of(float score) {
  auto bits = std::bit_cast<std::uint32_t>(score == 0 ? 0.0f : score);
  bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return ~bits;
}
double score_of(std::uint32_t rank) {
  std::uint32_t bits = ~rank;
  bits = bits & 0x80000000u ? bits & 0x7FFFFFFFu : ~bits;
  return std::bit_cast<float>(bits);
}

// Merges as encoding does and writes down what happened. A symbol keeps the place of its first start
// symbol, so those between it and the next one left are what it was made of.
template <typename Pair, typename Rank>
void merge_and_tell(std::vector<Symbol>& symbols, std::size_t base, bool steps, Pair&& pair,
                    Rank&& rank, ExplainedWord& out) {
  // Marks that only the vocabulary spells (of a word's last symbol) are no bytes of the word.
  for (const Symbol& symbol : symbols)
    out.start.push_back({std::min(base + symbol.begin, out.end),
                         std::min(base + symbol.begin + symbol.length, out.end), symbol.id});
  link(symbols);
  auto note = [&](std::uint32_t left, std::uint32_t right) {
    if (steps) out.merges.push_back({left, right, rank(symbols[left]), symbols[left].merged});
  };
  if (symbols.size() < kLongWord) {
    std::vector<std::uint64_t> heap;
    HeapQueue queue(heap);
    merge_all(symbols, queue, pair, note);
  } else {
    RankQueues queue;
    merge_all(symbols, queue, pair, note);
  }
  if (symbols.empty()) return;
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next) {
    std::size_t next =
        symbols[i].next >= 0 ? static_cast<std::size_t>(symbols[i].next) : out.start.size();
    std::size_t begin = out.start[static_cast<std::size_t>(i)].begin;
    out.tokens.push_back({begin, std::max(begin, out.start[next - 1].end), symbols[i].id});
  }
}

struct ByteAlphabet {
  std::array<char32_t, 256> to_char;
  std::array<std::int16_t, 512> to_byte;

  ByteAlphabet() {
    to_byte.fill(-1);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      to_char[b] = printable ? static_cast<char32_t>(b) : next++;
      to_byte[to_char[b]] = static_cast<std::int16_t>(b);
    }
  }
};

const ByteAlphabet& alphabet() {
  static const ByteAlphabet table;
  return table;
}

}  // namespace

void byte_level_append(std::string_view bytes, std::string& out) {
  for (char c : bytes) utf8_append(out, alphabet().to_char[static_cast<unsigned char>(c)]);
}

std::string byte_level_encode(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  byte_level_append(bytes, out);
  return out;
}

bool byte_level_decode(std::string_view text, std::string& out) {
  std::size_t start = out.size();
  while (!text.empty()) {
    Utf8Char c = utf8_next(text);
    int byte = c.valid && c.code < 512 ? alphabet().to_byte[c.code] : -1;
    if (byte < 0) {
      out.resize(start);
      return false;
    }
    out += static_cast<char>(byte);
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
  return true;
}

Bpe::Bpe(const Vocab& vocab, BpeOptions options) : vocab_(vocab), options_(std::move(options)) {
  by_words_ = !options_.byte_level && !options_.ignore_merges && options_.word_prefix.empty() &&
              options_.word_suffix.empty() && marks_begin_tokens(vocab);
  for (int b = 0; b < 256; ++b) {
    auto byte = static_cast<unsigned char>(b);
    char raw = static_cast<char>(byte);
    bytes_[b] = options_.byte_level ? vocab.find_plain(byte_level_encode({&raw, 1}))
                                    : vocab.find_byte(byte);
  }
}

bool Bpe::add_merge(std::string_view left, std::string_view right, std::uint32_t rank,
                    bool replace) {
  std::int32_t a = vocab_.find(left), b = vocab_.find(right);
  if (a == kNoToken || b == kNoToken || right.size() < options_.word_prefix.size()) return false;
  std::string whole(left);
  whole += right.substr(options_.word_prefix.size());
  std::int32_t token = vocab_.find(whole);
  if (token == kNoToken) return false;
  // Text must not become a special token by way of merges.
  if (!vocab_.is_special(token)) merges_.insert(pair_key(a, b), {rank, token}, replace);
  return true;
}

void Bpe::seed_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
  for (std::size_t i = 0; i < word.size(); ++i) {
    std::int32_t id = bytes_[static_cast<unsigned char>(word[i])];
    if (id == kNoToken) id = options_.unknown;
    if (id != kNoToken)
      symbols.push_back({static_cast<std::uint32_t>(i), 1, id, -1, -1, kNoRank, kNoToken});
  }
}

bool Bpe::push_bytes(std::string_view text, std::uint32_t at, std::vector<Symbol>& symbols) const {
  for (char c : text)
    if (bytes_[static_cast<unsigned char>(c)] == kNoToken) return false;
  for (char c : text)
    symbols.push_back({at++, 1, bytes_[static_cast<unsigned char>(c)], -1, -1, kNoRank, kNoToken});
  return true;
}

void Bpe::seed_chars(std::string_view word, WordScratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  bool after_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    auto length = static_cast<std::size_t>(utf8_next(word.substr(at)).length);
    std::string_view text = word.substr(at, length);
    bool marked = (at > 0 && !options_.word_prefix.empty()) ||
                  (at + length == word.size() && !options_.word_suffix.empty());
    if (marked) {
      scratch.text.clear();
      if (at > 0) scratch.text += options_.word_prefix;
      scratch.text += text;
      if (at + length == word.size()) scratch.text += options_.word_suffix;
      text = scratch.text;
    }
    auto begin = static_cast<std::uint32_t>(at);
    at += length;
    std::int32_t id = vocab_.find_plain(text);
    if (id == kNoToken && options_.byte_fallback && push_bytes(text, begin, symbols)) {
      after_unknown = false;
      continue;
    }
    bool unknown = id == kNoToken;
    if (unknown) id = options_.unknown;
    if (id == kNoToken) continue;
    if (unknown && after_unknown && options_.fuse_unknown)
      symbols.back().length += static_cast<std::uint32_t>(length);
    else
      symbols.push_back({begin, static_cast<std::uint32_t>(length), id, -1, -1, kNoRank, kNoToken});
    after_unknown = unknown;
  }
}

void Bpe::encode(std::string_view word, WordScratch& scratch,
                 std::vector<std::int32_t>& out) const {
  if (!by_words_) return encode_word(word, scratch, out);
  for_each_marked_word(word, [&](std::string_view part) { encode_word(part, scratch, out); });
}

bool Bpe::take_whole(std::string_view word, WordScratch& scratch, std::int32_t& id) const {
  if (!options_.ignore_merges) return false;
  std::string_view spelt = word;
  if (options_.byte_level) {
    scratch.text.clear();
    byte_level_append(word, scratch.text);
    spelt = scratch.text;
  }
  id = spelt.size() <= vocab_.longest() ? vocab_.find_plain(spelt) : kNoToken;
  return id != kNoToken;
}

void Bpe::seed(std::string_view word, WordScratch& scratch) const {
  scratch.symbols.clear();
  if (options_.byte_level)
    seed_bytes(word, scratch.symbols);
  else
    seed_chars(word, scratch);
}

inline void Bpe::pair(Symbol& left, const Symbol& right) const {
  if (const Merge* merge = merges_.find(pair_key(left.id, right.id))) {
    left.rank = merge->rank;
    left.merged = merge->token;
  }
}

void Bpe::encode_word(std::string_view word, WordScratch& scratch,
                      std::vector<std::int32_t>& out) const {
  std::int32_t whole;
  if (take_whole(word, scratch, whole)) {
    out.push_back(whole);
    return;
  }
  seed(word, scratch);
  merge_all(scratch, [&](Symbol& left, const Symbol& right) { pair(left, right); });
  if (scratch.symbols.empty()) return;
  for (std::int32_t i = 0; i >= 0; i = scratch.symbols[i].next)
    out.push_back(scratch.symbols[i].id);
}

void Bpe::explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const {
  if (!by_words_) return explain_word(word, 0, steps, out);
  for_each_marked_word(word, [&](std::string_view part) {
    explain_word(part, static_cast<std::size_t>(part.data() - word.data()), steps, out);
  });
}

void Bpe::explain_word(std::string_view word, std::size_t base, bool steps,
                       std::vector<ExplainedWord>& out) const {
  WordScratch scratch;
  ExplainedWord& told = out.emplace_back();
  told.begin = base, told.end = base + word.size();
  std::int32_t whole;
  if (take_whole(word, scratch, whole)) {
    told.way = WordWay::kWhole;
    told.tokens.push_back({told.begin, told.end, whole});
    return;
  }
  seed(word, scratch);
  merge_and_tell(
      scratch.symbols, base, steps, [&](Symbol& left, const Symbol& right) { pair(left, right); },
      [](const Symbol& left) { return static_cast<double>(left.rank); }, told);
}

ScoreBpe::ScoreBpe(const Vocab& vocab, const std::vector<float>& scores, std::int32_t unknown)
    : vocab_(vocab), unknown_(unknown), by_words_(marks_begin_tokens(vocab)) {
  ranks_.reserve(scores.size());
  for (float score : scores) {
    if (std::isnan(score)) score = -INFINITY;
    ranks_.push_back(rank_of(score));
  }
  for (int b = 0; b < 256; ++b) bytes_[b] = vocab.find_byte(static_cast<unsigned char>(b));
}

void ScoreBpe::encode(std::string_view word, WordScratch& scratch,
                      std::vector<std::int32_t>& out) const {
  if (!by_words_) return encode_word(word, scratch, out);
  for_each_marked_word(word, [&](std::string_view part) { encode_word(part, scratch, out); });
}

void ScoreBpe::seed(std::string_view word, std::vector<Symbol>& symbols) const {
  symbols.clear();
  for (std::size_t at = 0; at < word.size();) {
    auto length = static_cast<std::size_t>(utf8_next(word.substr(at)).length);
    symbols.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       vocab_.find_plain(word.substr(at, length)), -1, -1, kNoRank, kNoToken});
    at += length;
  }
}

inline void ScoreBpe::pair(std::string_view word, Symbol& left, const Symbol& right) const {
  std::size_t length = std::size_t{left.length} + right.length;
  if (length > vocab_.longest()) return;
  std::int32_t id = vocab_.find_plain(word.substr(left.begin, length));
  if (id == kNoToken) return;
  left.rank = ranks_[static_cast<std::size_t>(id)];
  left.merged = id;
}

template <typename Add>
void ScoreBpe::spell(std::string_view bytes, Add&& add) const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::int32_t id = bytes_[static_cast<unsigned char>(bytes[i])];
    if (id == kNoToken) id = unknown_;
    if (id != kNoToken) add(id, i);
  }
}

void ScoreBpe::encode_word(std::string_view word, WordScratch& scratch,
                           std::vector<std::int32_t>& out) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  seed(word, symbols);
  merge_all(scratch, [&](Symbol& left, const Symbol& right) { pair(word, left, right); });
  if (symbols.empty()) return;
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next) {
    const Symbol& symbol = symbols[i];
    if (symbol.id != kNoToken)
      out.push_back(symbol.id);
    else
      spell(word.substr(symbol.begin, symbol.length),
            [&](std::int32_t id, std::size_t) { out.push_back(id); });
  }
}

void ScoreBpe::explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const {
  if (!by_words_) return explain_word(word, 0, steps, out);
  for_each_marked_word(word, [&](std::string_view part) {
    explain_word(part, static_cast<std::size_t>(part.data() - word.data()), steps, out);
  });
}

void ScoreBpe::explain_word(std::string_view word, std::size_t base, bool steps,
                            std::vector<ExplainedWord>& out) const {
  std::vector<Symbol> symbols;
  ExplainedWord& told = out.emplace_back();
  told.begin = base, told.end = base + word.size();
  seed(word, symbols);
  merge_and_tell(
      symbols, base, steps, [&](Symbol& left, const Symbol& right) { pair(word, left, right); },
      [](const Symbol& left) { return score_of(left.rank); }, told);
  std::vector<PlacedToken> merged = std::move(told.tokens);
  told.tokens.clear();
  for (const PlacedToken& token : merged) {
    if (token.id != kNoToken)
      told.tokens.push_back(token);
    else
      spell(word.substr(token.begin - base, token.end - token.begin),
            [&](std::int32_t id, std::size_t at) {
              told.tokens.push_back({token.begin + at, token.begin + at + 1, id});
            });
  }
}

}  // namespace vitrine
