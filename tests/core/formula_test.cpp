// The short formulas of the options: what titles say acts, and in which order.
#include "core/attention/formula.h"

#include <doctest/doctest.h>

using namespace qkv;

TEST_SUITE("formula") {
  TEST_CASE("the scaled scores name what acts on them, in order") {
    CHECK(scaled_formula({}) == "S/√dₖ");
    CHECK(scaled_formula({.scale = 0.5f}) == "0.5·S");
    CHECK(scaled_formula({.softcap = 20.0f}) == "cap(S/√dₖ)");
    CHECK(scaled_formula({.alibi = true}) == "S/√dₖ + ALiBi");
    const SharedMatrix bias(Matrix::Zero(2, 2));
    CHECK(scaled_formula({.bias = bias}) == "S/√dₖ + B");
    CHECK(scaled_formula({.scale = -2.0f, .softcap = 3.0f, .alibi = true, .bias = bias}) == "cap(-2·S) + ALiBi + B");
    // Neither changes the scaled scores: the rope acts before, the others behind.
    CHECK(scaled_formula({.causal = true, .key_valid = {1, 0}, .rope = Rope{}, .window = 2, .sink = {1}}) == "S/√dₖ");
  }

  TEST_CASE("the raw scores say that a rope turns both factors") {
    CHECK(scores_formula({}) == "QKᵀ");
    CHECK(scores_formula({.rope = Rope{}}) == "R(Q)·R(K)ᵀ");
  }

  TEST_CASE("the whole of a head") {
    CHECK(attention_formula({}) == "softmax(QKᵀ/√dₖ)·V");
    CHECK(attention_formula({.scale = 1.0f}) == "softmax(1·QKᵀ)·V");
    const AttentionOptions all = {
        .rope = Rope{}, .softcap = 5.0f, .alibi = true, .bias = SharedMatrix(Matrix::Zero(1, 1)), .sink = {0}};
    CHECK(attention_formula(all) == "softmax(cap(R(Q)·R(K)ᵀ/√dₖ) + ALiBi + B; sink)·V");
  }

  TEST_CASE("factors are short, and exact where a few characters suffice") {
    CHECK(factor_text(1) == "1");
    CHECK(factor_text(0.0625f) == "0.0625");
    CHECK(factor_text(-0.125f) == "-0.125");
    CHECK(factor_text(0.57735026f) == "0.577");
    CHECK(factor_text(123456789.0f) == "1.23e+08");
  }
}
