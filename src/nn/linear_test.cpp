#include "nn/linear.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "kernels/backend.h"
#include "nn/layers.h"
#include "nn/test_model.h"
#include "nn/weight_loader.h"

namespace vitrine {
namespace {

using test::hf_model;
using testing::ElementsAre;

// Two matrices of three outputs and two inputs, with biases, and one row x.
class LinearTest : public testing::Test {
 protected:
  Tensor tensor(std::vector<float>& values) {
    return {values.data(), DType::kF32, {1, static_cast<std::int64_t>(values.size())}};
  }
  Linear bind(const std::string& stem) {
    Linear linear = w.linear({"", stem + ".weight"}, 3, 2, {"", stem + ".bias"});
    EXPECT_TRUE(w.status().ok());
    return linear;
  }

  std::unique_ptr<ModelFile> file = hf_model("{}", {{"a.weight", {3, 2}, {1, 2, 3, 4, 5, 6}},
                                                    {"a.bias", {3}, {10, 20, 30}},
                                                    {"b.weight", {3, 2}, {1, 0, 0, 1, -1, 0}}});
  std::unique_ptr<Backend> ref = create_backend("ref", {}).value();
  WeightLoader w{*file, *ref};
  std::vector<float> x{1, 2}, out{0, 0, 0}, other{0, 0, 0}, scratch{0, 0, 0};
};

TEST_F(LinearTest, MultipliesAndAddsItsBias) {
  bind("a")(*ref, tensor(out), tensor(x));
  EXPECT_THAT(out, ElementsAre(15, 31, 47));
}

TEST_F(LinearTest, AddsToWhatIsThere) {
  out = {1, 1, 1};
  bind("a").add(*ref, tensor(out), tensor(scratch), tensor(x));
  EXPECT_THAT(out, ElementsAre(16, 32, 48));
}

TEST_F(LinearTest, AGroupIsItsProducts) {
  Linear a = bind("a"), b = bind("b");
  Linear::group(*ref, {{tensor(out), a}, {tensor(other), b}}, tensor(x), {});
  EXPECT_THAT(out, ElementsAre(15, 31, 47));
  EXPECT_THAT(other, ElementsAre(1, 2, -1));
}

TEST_F(LinearTest, AGroupNormsItsInput) {
  std::vector<float> ones{1, 1}, normed{0, 0};
  Linear b = bind("b");
  InputNorm norm{{ones.data(), DType::kF32, {2}}, 0, tensor(normed)};
  Linear::group(*ref, {{tensor(out), b}}, tensor(x), norm);
  const float size = std::sqrt(2.5f);  // of (1, 2), root mean square
  EXPECT_NEAR(out[0], 1 / size, 1e-6);
  EXPECT_NEAR(out[1], 2 / size, 1e-6);
}

TEST_F(LinearTest, GluIsTheActivatedGateTimesUp) {
  Linear gate = bind("b"), up = bind("a");
  Linear::glu(*ref, tensor(out), tensor(scratch), tensor(x), {}, gate, up, Activation::kRelu);
  EXPECT_THAT(out, ElementsAre(15, 62, 0));
}

// The final norm of the rows that are wanted, in every kind.
TEST_F(LinearTest, NormOfRows) {
  std::vector<float> rows{9, 9, 3, 1}, weights{1, 1}, hidden{0, 0};
  std::int32_t wanted = 1;
  Tensor x{rows.data(), DType::kF32, {2, 2}}, row{&wanted, DType::kI32, {1}};
  Norm norm;
  norm.of_rows(*ref, tensor(hidden), x, row);
  EXPECT_THAT(hidden, ElementsAre(3, 1));
  norm.w = {weights.data(), DType::kF32, {2}};
  norm.of_rows(*ref, tensor(hidden), x, row);
  EXPECT_NEAR(hidden[0], 3 / std::sqrt(5.0), 1e-6);
  norm.kind = NormKind::kLayer;
  norm.of_rows(*ref, tensor(hidden), x, row);
  EXPECT_THAT(hidden, ElementsAre(1, -1));
}

}  // namespace
}  // namespace vitrine
