#include "nn/weight_loader.h"

#include <gmock/gmock.h>

#include "kernels/backend.h"
#include "nn/layer_loader.h"
#include "nn/test_model.h"

namespace vitrine {
namespace {

using test::GgufModel;
using test::hf_model;
using test::TestTensor;
using testing::ElementsAre;
using testing::HasSubstr;

struct Loader {
  explicit Loader(std::unique_ptr<ModelFile> f)
      : file(std::move(f)), backend(create_backend("ref", {}).value()), w(*file, *backend) {}
  std::string error() const { return w.status().ok() ? "none" : w.status().error().message; }
  // Row r of a weight, by the backend.
  std::vector<float> row(const Weight& weight, std::int32_t r) {
    std::vector<float> out(static_cast<std::size_t>(weight.cols()));
    backend->embed({out.data(), DType::kF32, {1, weight.cols()}}, weight, {&r, DType::kI32, {1}});
    return out;
  }
  std::vector<float> row(const MatrixSource& m, std::int32_t r) { return row(*w.table(m), r); }

  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Backend> backend;
  WeightLoader w;
};

Loader hf(const std::vector<TestTensor>& tensors, const std::string& config = "{}") {
  return Loader(hf_model(config, tensors));
}

TEST(WeightLoader, MissingTensorIsNamed) {
  Loader l = hf({{"a.weight", {2, 3}}});
  l.w.matrix({"blk.0.b.weight", "b.weight"}, 2, 3);
  EXPECT_THAT(l.error(), HasSubstr("tensor 'b.weight' is missing"));
}

TEST(WeightLoader, WrongShapeIsNamedWithBothShapes) {
  Loader l = hf({{"a.weight", {2, 3}}});
  MatrixSource m = l.w.matrix({"", "a.weight"}, 3, 2);
  EXPECT_THAT(l.error(), HasSubstr("tensor 'a.weight' has shape [2, 3], "));
  EXPECT_THAT(l.error(), HasSubstr("needs [3, 2]"));
  // What follows an error stays harmless.
  EXPECT_EQ(l.w.linear(m).weight(), nullptr);
  EXPECT_TRUE(l.w.floats({"", "a.weight"}, 6).empty());
  EXPECT_FALSE(l.w.activations({4, 4}).defined());
}

TEST(WeightLoader, UnreadableTypeIsNamedWithTheReadableOnes) {
  Loader l = hf({{"a.weight", {2, 3}, {}, "I32"}});
  l.w.matrix({"", "a.weight"}, 2, 3);
  EXPECT_THAT(l.error(), HasSubstr("tensor 'a.weight' has type i32"));
  EXPECT_THAT(l.error(), HasSubstr("bf16"));
}

TEST(WeightLoader, FirstErrorStays) {
  Loader l = hf({{"a.weight", {2, 3}}});
  l.w.matrix({"", "first"}, 2, 3);
  l.w.matrix({"", "second"}, 2, 3);
  EXPECT_THAT(l.error(), HasSubstr("'first'"));
}

TEST(WeightLoader, SliceAndTranspose) {
  Loader l = hf({{"a.weight", {3, 2}}});
  MatrixSource m = l.w.matrix({"", "a.weight"}, 3, 2);
  EXPECT_THAT(l.row(WeightLoader::slice(m, 1, 2), 1), ElementsAre(4, 5));
  MatrixSource t = l.w.matrix({"", "a.weight"}, 2, 3, true);
  EXPECT_EQ(t.rows(), 2);
  EXPECT_THAT(l.row(t, 0), ElementsAre(0, 2, 4));
  EXPECT_THAT(l.row(t, 1), ElementsAre(1, 3, 5));
}

TEST(WeightLoader, OneMatrixOfAStack) {
  Loader l = hf({{"experts.weight", {3, 2, 4}}});
  for (int e = 0; e < 3; ++e) {
    MatrixSource m = l.w.stacked_matrix({"", "experts.weight"}, e, 3, 2, 4);
    ASSERT_EQ(m.rows(), 2) << l.error();
    EXPECT_EQ(m.name, fmt::format("experts.weight[{}]", e));
    for (int r = 0; r < 2; ++r) {
      const float first = static_cast<float>(8 * e + 4 * r);
      EXPECT_THAT(l.row(m, r), ElementsAre(first, first + 1, first + 2, first + 3));
    }
  }
  l.w.stacked_matrix({"", "experts.weight"}, 0, 2, 2, 4);
  EXPECT_THAT(l.error(), HasSubstr("has shape [3, 2, 4], the configuration needs [2, 2, 4]"));
}

TEST(WeightLoader, ComputedRows) {
  Loader l = hf({{"a.weight", {1, 1}}});
  MatrixSource m = WeightLoader::computed("table", {1, 2, 3, 4, 5, 6}, 3);
  EXPECT_EQ(m.rows(), 2);
  EXPECT_THAT(l.row(m, 1), ElementsAre(4, 5, 6));
}

// Two heads of four rows: pairs (0,1), (2,3) become (0,2), (1,3), so rows 0 2 1 3 of each head.
TEST(WeightLoader, UnpermuteRotary) {
  Loader l = hf({{"a.weight", {8, 1}}});
  MatrixSource m = WeightLoader::unpermute_rotary(l.w.matrix({"", "a.weight"}, 8, 1), 2, 4);
  std::vector<float> rows;
  for (int r = 0; r < 8; ++r) rows.push_back(l.row(m, r)[0]);
  EXPECT_THAT(rows, ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  std::vector<float> v = {0, 1, 2, 3, 4, 5, 6, 7};
  WeightLoader::unpermute_rotary(v, 2, 4);
  EXPECT_EQ(v, rows);
}

TEST(WeightLoader, NormOffset) {
  Loader l = hf({{"n.weight", {2}, {0.5f, -1}}, {"n.bias", {2}, {3, 4}}});
  Norm n = l.w.norm(NormKind::kLayer, {"", "n.weight"}, 2, 1e-5f, {"", "n.bias"}, 1);
  ASSERT_EQ(l.error(), "none");
  EXPECT_EQ(n.w.f32()[0], 1.5f);
  EXPECT_EQ(n.w.f32()[1], 0);
  EXPECT_EQ(n.b.f32()[1], 4);
}

TEST(WeightLoader, HeadIsTheEmbeddingUnlessTheFileSaysOtherwise) {
  std::vector<TestTensor> tensors = {{"e.weight", {2, 1}, {1, 2}}};
  auto head_of = [](Loader& l) {
    return l.w.head({"", "lm_head.weight"}, l.w.matrix({"", "e.weight"}, 2, 1));
  };
  Loader tied = hf(tensors);
  EXPECT_THAT(tied.row(*head_of(tied).weight(), 1), ElementsAre(2));
  Loader denied = hf(tensors, R"({"tie_word_embeddings": false})");
  head_of(denied);
  EXPECT_THAT(denied.error(), HasSubstr("'lm_head.weight' is missing"));
  tensors.push_back({"lm_head.weight", {2, 1}, {3, 4}});
  Loader own = hf(tensors);
  EXPECT_THAT(own.row(*head_of(own).weight(), 1), ElementsAre(4));
}

TEST(FindTensor, KnowsHuggingFacesVariants) {
  Name name{"", "model.layers.0.a.weight"};
  for (const char* variant : {"model.layers.0.a.weight", "language_model.model.layers.0.a.weight",
                              "model.language_model.layers.0.a.weight", "layers.0.a.weight"})
    EXPECT_NE(find_tensor(*hf_model("{}", {{variant, {1}}}), name), nullptr) << variant;
  EXPECT_EQ(find_tensor(*hf_model("{}", {{"vision.layers.0.a.weight", {1}}}), name), nullptr);
  EXPECT_EQ(find_tensor(*GgufModel().tensor({"layers.0.a.weight", {1}}).open(),
                        {"model.layers.0.a.weight", ""}),
            nullptr);
}

TEST(WeightLoader, RefusesTensorsWithoutAPlaceInABoundLayer) {
  std::vector<TestTensor> tensors = {{"model.layers.0.a.weight", {1}},
                                     {"model.layers.0.rotary_emb.inv_freq", {1}},
                                     {"model.layers.1.extra.weight", {1}},
                                     {"vision.layers.0.a.weight", {1}}};
  Loader fine = hf(tensors);
  fine.w.floats({"", "model.layers.0.a.weight"}, 1);
  fine.w.refuse_unbound();
  EXPECT_EQ(fine.error(), "none");
  tensors.push_back({"model.layers.0.sinks", {1}});
  Loader odd = hf(tensors);
  odd.w.floats({"", "model.layers.0.a.weight"}, 1);
  odd.w.refuse_unbound();
  EXPECT_THAT(odd.error(), HasSubstr("'model.layers.0.sinks' has no place"));
}

// Fused and separate matrices of one layer give the same rows.
TEST(LayerLoader, FusedEqualsSeparate) {
  DecoderConfig c{.layers = 1, .dim = 1, .heads = 2, .kv_heads = 1, .head_dim = 2, .ffn = 2};
  const std::string p = "model.layers.0.";
  Loader separate = hf({{p + "self_attn.q_proj.weight", {4, 1}, {1, 2, 3, 4}},
                        {p + "self_attn.k_proj.weight", {2, 1}, {5, 6}},
                        {p + "self_attn.k_proj.bias", {2}, {50, 60}},
                        {p + "self_attn.v_proj.weight", {2, 1}, {7, 8}},
                        {p + "self_attn.o_proj.weight", {1, 4}},
                        {p + "mlp.gate_proj.weight", {2, 1}, {1, 2}},
                        {p + "mlp.up_proj.weight", {2, 1}, {3, 4}},
                        {p + "mlp.down_proj.weight", {1, 2}}});
  Loader fused = hf({{p + "self_attn.qkv_proj.weight", {8, 1}, {1, 2, 3, 4, 5, 6, 7, 8}},
                     {p + "self_attn.qkv_proj.bias", {8}, {0, 0, 0, 0, 50, 60, 0, 0}},
                     {p + "self_attn.o_proj.weight", {1, 4}},
                     {p + "mlp.gate_up_proj.weight", {4, 1}, {1, 2, 3, 4}},
                     {p + "mlp.down_proj.weight", {1, 2}}});
  LayerLoader a{separate.w, c, 0}, b{fused.w, c, 0};
  Attention x = a.attention(), y = b.attention();
  GatedFfn f = a.gated_ffn(), g = b.fused_gated_ffn();
  ASSERT_EQ(separate.error(), "none");
  ASSERT_EQ(fused.error(), "none");
  for (int r = 0; r < 4; ++r)
    EXPECT_EQ(separate.row(*x.q.weight(), r), fused.row(*y.q.weight(), r));
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(separate.row(*x.k.weight(), r), fused.row(*y.k.weight(), r));
    EXPECT_EQ(separate.row(*x.v.weight(), r), fused.row(*y.v.weight(), r));
    EXPECT_EQ(separate.row(*f.gate.weight(), r), fused.row(*g.gate.weight(), r));
    EXPECT_EQ(separate.row(*f.up.weight(), r), fused.row(*g.up.weight(), r));
    EXPECT_EQ(x.k.bias().f32()[r], y.k.bias().f32()[r]);
  }
  EXPECT_FALSE(x.q.bias().defined());
}

// llama's GGUF files: q, k and their biases change order, v does not.
TEST(LayerLoader, AdjacentPairsConcernQueriesAndKeys) {
  DecoderConfig c{.layers = 1, .dim = 1, .heads = 1, .kv_heads = 1, .head_dim = 4, .ffn = 1};
  Loader l(GgufModel()
               .tensor({"blk.0.attn_q.weight", {4, 1}})
               .tensor({"blk.0.attn_k.weight", {4, 1}})
               .tensor({"blk.0.attn_k.bias", {4}})
               .tensor({"blk.0.attn_v.weight", {4, 1}})
               .tensor({"blk.0.attn_output.weight", {1, 4}})
               .open());
  c.adjacent_pairs = true;
  Attention a = LayerLoader{l.w, c, 0}.attention();
  ASSERT_EQ(l.error(), "none");
  std::vector<float> q, v;
  for (int r = 0; r < 4; ++r) {
    q.push_back(l.row(*a.q.weight(), r)[0]);
    v.push_back(l.row(*a.v.weight(), r)[0]);
  }
  EXPECT_THAT(q, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(v, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(a.k.bias().f32()[1], 2);
}

}  // namespace
}  // namespace vitrine
