// make_model FOLDER: a tiny random llama with a byte-level tokenizer and ChatML's markers, the same
// bytes each time, for tests that talk to the server. What it writes is readable: the rows of the
// head that belong to words and letters are larger than the others.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "support/files.h"

namespace vitrine::test {
namespace {

constexpr int kHidden = 64, kLayers = 2, kHeads = 4, kKvHeads = 2, kFfn = 96, kContext = 2048;
constexpr int kHeadDim = kHidden / kHeads;

// Byte-level BPE spells each byte as a printable character: bytes that are one stand for
// themselves, the others for U+0100 and up.
std::string spell(unsigned byte) {
  auto printable = [](unsigned b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  };
  unsigned code = byte;
  if (!printable(byte)) {
    code = 256;
    for (unsigned b = 0; b < byte; ++b) code += !printable(b);
  }
  std::string out;
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  out += static_cast<char>(0xC0 | (code >> 6));
  out += static_cast<char>(0x80 | (code & 0x3F));
  return out;
}

std::string spell(std::string_view text) {
  std::string out;
  for (char c : text) out += spell(static_cast<unsigned char>(c));
  return out;
}

struct Vocabulary {
  json::object ids;
  json::array added, merges;
  std::vector<float> weight;  // of the token's row of the head

  void add(const std::string& spelling, float w) {
    ids[spelling] = ids.size();
    weight.push_back(w);
  }
  void add_special(const char* name) {
    added.push_back(json::object{{"id", ids.size()},
                                 {"content", name},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", true}});
    add(name, 0.01F);
  }
  // A word is merged from left to right, a byte at a time.
  void add_word(const std::string& word) {
    std::string left = spell(word.substr(0, 1));
    for (std::size_t i = 1; i < word.size(); ++i) {
      std::string right = spell(word.substr(i, 1));
      if (!ids.contains(left + right)) {
        merges.push_back(json::array{left, right});
        add(left + right, 1);
      }
      left += right;
    }
  }
};

// <pad> 0, <s> 1, </s> 2, <|im_start|> 3, <|im_end|> 4, the bytes from 5 on, then words.
Vocabulary make_vocabulary() {
  Vocabulary v;
  for (const char* name : {"<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"})
    v.add_special(name);
  for (unsigned byte = 0; byte < 256; ++byte) {
    bool readable = (byte >= 'a' && byte <= 'z') || byte == ' ' || byte == '.';
    // The two bytes of U+00E9, so that characters are cut between tokens now and then.
    bool half = byte == 0xC3 || byte == 0xA9;
    v.add(spell(byte), readable ? 1.0F : half ? 0.8F : 0.01F);
  }
  for (const char* word : {" the", " cat", " sat", " on", " mat", " hello", " world", " and",
                           " glass", " house", "\xC3\xA9t\xC3\xA9"})
    v.add_word(word);
  return v;
}

json::object tokenizer_json(const Vocabulary& v) {
  json::object bos{{"SpecialToken", json::object{{"id", "<s>"}, {"type_id", 0}}}};
  json::object text{{"Sequence", json::object{{"id", "A"}, {"type_id", 0}}}};
  json::object special{{"id", "<s>"}, {"ids", json::array{1}}, {"tokens", json::array{"<s>"}}};
  return {{"version", "1.0"},
          {"added_tokens", v.added},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           json::object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor", json::object{{"type", "TemplateProcessing"},
                                          {"single", json::array{bos, text}},
                                          {"pair", json::array{bos, text}},
                                          {"special_tokens", json::object{{"<s>", special}}}}},
          {"decoder", json::object{{"type", "ByteLevel"}}},
          {"model", json::object{{"type", "BPE"}, {"vocab", v.ids}, {"merges", v.merges}}}};
}

json::object config_json(int vocab) {
  return {{"architectures", json::array{"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", kHidden},
          {"intermediate_size", kFfn},
          {"num_hidden_layers", kLayers},
          {"num_attention_heads", kHeads},
          {"num_key_value_heads", kKvHeads},
          {"head_dim", kHeadDim},
          {"max_position_embeddings", kContext},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", false},
          {"torch_dtype", "float32"},
          {"vocab_size", vocab},
          {"bos_token_id", 1},
          {"eos_token_id", 2},
          {"pad_token_id", 0}};
}

WeightMap make_weights(const Vocabulary& v) {
  auto vocab = static_cast<std::int64_t>(v.weight.size());
  unsigned seed = 1;
  WeightMap out;
  auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns, float gain) {
    float scale = gain / std::sqrt(static_cast<float>(columns));
    out[name + ".weight"] = random_weights({rows, columns}, scale, seed++);
  };
  auto norm = [&](const std::string& name) {
    out[name + ".weight"] = random_weights({kHidden}, 0.1F, seed++, 1);
  };
  out["model.embed_tokens.weight"] = random_weights({vocab, kHidden}, 1, seed++);
  for (int i = 0; i < kLayers; ++i) {
    std::string layer = fmt::format("model.layers.{}.", i);
    matrix(layer + "self_attn.q_proj", kHeads * kHeadDim, kHidden, 2);
    matrix(layer + "self_attn.k_proj", kKvHeads * kHeadDim, kHidden, 2);
    matrix(layer + "self_attn.v_proj", kKvHeads * kHeadDim, kHidden, 2);
    matrix(layer + "self_attn.o_proj", kHidden, kHeads * kHeadDim, 2);
    matrix(layer + "mlp.gate_proj", kFfn, kHidden, 1);
    matrix(layer + "mlp.up_proj", kFfn, kHidden, 1);
    matrix(layer + "mlp.down_proj", kHidden, kFfn, 2);
    norm(layer + "input_layernorm");
    norm(layer + "post_attention_layernorm");
  }
  norm("model.norm");
  matrix("lm_head", vocab, kHidden, 4);
  Weights& head = out["lm_head.weight"];
  for (std::size_t row = 0; row < v.weight.size(); ++row)
    for (int column = 0; column < kHidden; ++column)
      head.values[row * kHidden + static_cast<std::size_t>(column)] *= v.weight[row];
  return out;
}

bool write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

bool write_model(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  Vocabulary v = make_vocabulary();
  Bytes weights = safetensors_image(make_weights(v), DType::kF32);
  json::object generation{{"bos_token_id", 1}, {"eos_token_id", json::array{2, 4}}};
  return write(folder / "tokenizer.json", json::serialize(tokenizer_json(v))) &&
         write(folder / "config.json",
               json::serialize(config_json(static_cast<int>(v.weight.size())))) &&
         write(folder / "generation_config.json", json::serialize(generation)) &&
         write(folder / "model.safetensors",
               {reinterpret_cast<const char*>(weights.data()), weights.size()});
}

}  // namespace
}  // namespace vitrine::test

int main(int argc, char** argv) {
  if (argc == 2 && vitrine::test::write_model(argv[1])) return 0;
  std::fprintf(stderr, "usage: make_model FOLDER; the folder must be writable\n");
  return 1;
}
