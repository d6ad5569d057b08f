#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/parts.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/word_cache.h"

namespace vitrine {
namespace {

static_assert(Tokenizer::kCacheBytes == WordCaches::kBytes);
// Words and texts are indexed by 32-bit numbers; a longer text is encoded in parts of this size.
constexpr std::size_t kLargestPart = std::size_t{1} << 29;

bool is_raw(const TokenizerParts& parts, std::int32_t id) {
  if (!parts.raw_added) return false;
  TokenKind kind = parts.vocab.kind(id);
  return kind != TokenKind::kNormal && kind != TokenKind::kUnused;
}

class Encoding {
 public:
  Encoding(const TokenizerParts& parts, WordCache& cache, bool special,
           std::vector<std::int32_t>& out)
      : parts_(parts), cache_(cache), special_(special), out_(out) {}

  void add(std::string_view text) {
    std::vector<AddedTokens::Segment> segments;
    parts_.added.split(text, AddedTokens::Stage::kRaw, special_, segments);
    add(text, segments);
  }
  // Special tokens outside of `words` only. They are all looked for in the raw text then.
  void add(std::string_view text, std::span<const ByteSpan> words) {
    std::vector<AddedTokens::Segment> segments;
    parts_.added.split_around(text, words, segments);
    special_ = false;
    add(text, segments);
  }

 private:
  void add(std::string_view text, const std::vector<AddedTokens::Segment>& segments) {
    for (const AddedTokens::Segment& segment : segments) {
      if (segment.token != kNoToken)
        out_.push_back(segment.token);
      else
        add_plain(segment.text, segment.text.data() == text.data());
    }
  }

  void add_plain(std::string_view text, bool at_start) {
    std::string normalized;
    if (!parts_.normalizer.empty()) {
      normalized = parts_.normalizer.apply(text);
      text = normalized;
    }
    std::vector<AddedTokens::Segment> segments;
    parts_.added.split(text, AddedTokens::Stage::kNormalized, special_, segments);
    for (const AddedTokens::Segment& segment : segments) {
      if (segment.token != kNoToken) {
        out_.push_back(segment.token);
        continue;
      }
      bool first = at_start && segment.text.data() == text.data();
      const char* end = segment.text.data() + segment.text.size();
      // An added token may be part of a character and leave the rest of it.
      const WordSplitter* splitter = parts_.pre_tokenizer.splitter();
      if (splitter != nullptr && utf8_valid(segment.text))
        splitter->for_each(segment.text, [&](std::string_view word) {
          add_word(word, static_cast<std::size_t>(end - word.data()));
        });
      else
        parts_.pre_tokenizer.run(segment.text, first,
                                 [&](std::string_view word) { add_word(word, word.size()); });
    }
  }

  // Up to `readable` bytes may be read from the word's beginning.
  void add_word(std::string_view word, std::size_t readable) {
    if (word.size() > WordCache::kLongestWord || word.empty())
      return parts_.model->encode(word, scratch_, out_);
    WordCache::Key key = WordCache::key_of(word, readable);
    if (const WordCache::Entry* entry = cache_.find(key)) {
      for (std::size_t i = 0; i < WordCache::kMostIds && entry->ids[i] != kNoToken; ++i)
        out_.push_back(entry->ids[i]);
      return;
    }
    std::size_t before = out_.size();
    parts_.model->encode(word, scratch_, out_);
    std::size_t count = out_.size() - before;
    if (count <= WordCache::kMostIds) cache_.insert(key, out_.data() + before, count);
  }

  const TokenizerParts& parts_;
  WordCache& cache_;
  bool special_;
  std::vector<std::int32_t>& out_;
  WordScratch scratch_;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<TokenizerParts> parts)
    : parts_(std::move(parts)), caches_(std::make_unique<WordCaches>()) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const ModelFile& file) {
  if (file.kind() == FileKind::kGguf) return from_gguf(file.meta());
  if (file.tokenizer_json().empty())
    return make_error(ErrorCode::kNotFound, "{}: there is no tokenizer.json", file.path());
  return from_json(file.tokenizer_json(), file.tokenizer_config_json());
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<std::int32_t> out;
  if (options.add_special) out = parts_->prefix;
  std::string sanitized;
  if (!utf8_valid(text)) {
    sanitized = utf8_sanitize(text);
    text = sanitized;
  }
  WordCaches::Lease cache(*caches_);
  Encoding encoding(*parts_, *cache, options.parse_special, out);
  while (!text.empty()) {
    std::size_t size = std::min(text.size(), kLargestPart);
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    encoding.add(text.substr(0, size));
    text.remove_prefix(size);
  }
  if (options.add_special) out.insert(out.end(), parts_->suffix.begin(), parts_->suffix.end());
  return out;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options,
                                            std::span<const ByteSpan> words) const {
  // If no words spell a special token, nothing has to be kept apart. In a text that is not valid
  // UTF-8 positions are not reliable, so no special tokens are read from it.
  bool valid = utf8_valid(text) && text.size() <= kLargestPart;
  options.parse_special = valid;
  if (!valid || !parts_->added.spell_special(text, words, parts_->normalizer))
    return encode(text, options);
  std::vector<std::int32_t> out;
  if (options.add_special) out = parts_->prefix;
  WordCaches::Lease cache(*caches_);
  Encoding(*parts_, *cache, true, out).add(text, words);
  if (options.add_special) out.insert(out.end(), parts_->suffix.begin(), parts_->suffix.end());
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  DecodeStream stream(parts_->decoder, false);
  std::string text;
  for (std::int32_t id : ids)
    if (parts_->vocab.has(id) && !(skip_special && is_special(id)))
      stream.push(parts_->vocab.content(id), is_raw(*parts_, id), text);
  stream.finish(text);
  return text;
}

std::string Tokenizer::piece(std::int32_t id) const {
  if (!parts_->vocab.has(id)) return {};
  if (is_special(id) && byte_token_value(parts_->vocab.content(id)) < 0)
    return std::string(parts_->vocab.content(id));
  return parts_->decoder.piece(parts_->vocab.content(id), is_raw(*parts_, id));
}

std::int32_t Tokenizer::vocab_size() const { return parts_->vocab.size(); }
std::optional<std::int32_t> Tokenizer::bos() const { return parts_->bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return parts_->eos; }
std::optional<std::int32_t> Tokenizer::unk() const { return parts_->unk; }
std::optional<std::int32_t> Tokenizer::pad() const { return parts_->pad; }
bool Tokenizer::is_special(std::int32_t id) const { return parts_->vocab.is_special(id); }
const char* Tokenizer::kind_of(std::int32_t id) const {
  static constexpr const char* kNames[] = {"missing",      "normal", "unknown", "control",
                                           "user defined", "unused", "byte"};
  const Vocab& vocab = parts_->vocab;
  return kNames[static_cast<int>(vocab.has(id) ? vocab.kind(id) : TokenKind::kMissing)];
}
std::string Tokenizer::kind() const { return parts_->kind; }

std::optional<std::int32_t> Tokenizer::find(std::string_view token_content) const {
  std::int32_t id = parts_->vocab.find(token_content);
  if (id == kNoToken) return std::nullopt;
  return id;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special, bool continues)
    : tokenizer_(&tokenizer),
      skip_special_(skip_special),
      stream_(std::make_unique<DecodeStream>(tokenizer.parts_->decoder, continues)) {}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::push(std::int32_t id) {
  std::string text;
  const TokenizerParts& parts = *tokenizer_->parts_;
  bool skipped = skip_special_ && parts.vocab.is_special(id) &&
                 std::find(shown_.begin(), shown_.end(), id) == shown_.end();
  if (parts.vocab.has(id) && !skipped)
    stream_->push(parts.vocab.content(id), is_raw(parts, id), text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  stream_->finish(text);
  return text;
}

}  // namespace vitrine
