// What tests of mappings share: arrays whose cells are known, and what is proposed for them.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "core/session/tensor_mapping.h"
#include "core/tensor_io/npz.h"
#include "tests/core/session_test_support.h"

namespace qkv::test {

using Shape = std::vector<std::uint64_t>;
using At = std::vector<std::uint64_t>;  // an index of each axis

// Every array has its own numbers, so that a wrong cell is seen wherever it comes from.
inline float number(int salt, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return static_cast<float>(salt) + 0.01f * static_cast<float>(a * 49 + b * 7 + c);
}

// The array whose cell at each index is what `cell` gives.
inline NamedArray array_of(const std::string& name, const Shape& shape, const std::function<float(const At&)>& cell) {
  std::vector<float> values;
  At at(shape.size(), 0);
  while (true) {
    values.push_back(cell(at));
    std::size_t axis = shape.size();
    while (axis > 0 && ++at[axis - 1] == shape[axis - 1]) at[--axis] = 0;
    if (axis == 0) return {name, shape, std::move(values)};
  }
}
inline NamedArray any_array(const std::string& name, const Shape& shape, int salt = 0) {
  std::uint64_t count = 0;
  return array_of(name, shape, [&](const At&) { return number(salt, 0, 0, count++); });
}

inline NamedTensors file_of(const std::string& name, const std::vector<NamedArray>& arrays) {
  Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().message);
  Result<TensorFile> file = TensorFile::from_bytes(std::move(bytes).value(), "x");
  REQUIRE(file.ok());
  return {name, std::move(file).value()};
}
inline TensorSet set_of(const std::vector<NamedArray>& arrays) { return {file_of("file.npz", arrays)}; }

// What is proposed without a question, applied.
inline Session opened(const TensorSet& files, const MappingRequest& request = {}) {
  const MappingProposal proposal = propose_mapping(files, request);
  REQUIRE_MESSAGE(!proposal.error, proposal.error->message);
  const std::string asked = proposal.questions.empty() ? "" : question_text(proposal.questions.front());
  REQUIRE_MESSAGE(proposal.questions.empty(), asked);
  Result<Session> session = apply_mapping(files, proposal.mapping, "t");
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return std::move(session).value();
}
inline Session opened(const std::vector<NamedArray>& arrays, const MappingRequest& request = {}) {
  return opened(set_of(arrays), request);
}

inline MappingRequest layouts(const std::string& text) {
  MappingRequest request;
  const Status read = read_layout_text(text, request);
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  return request;
}

inline void check_question(const MappingProposal& proposal, MappingQuestion::Kind kind,
                           const std::vector<std::string>& values) {
  REQUIRE_MESSAGE(!proposal.error, proposal.error->message);
  REQUIRE(proposal.questions.size() == 1);
  const MappingQuestion& question = proposal.questions.front();
  CAPTURE(question_text(question));
  CHECK(question.kind == kind);
  std::vector<std::string> choices;
  for (const MappingQuestion::Choice& choice : question.choices) choices.push_back(choice.value);
  CHECK(choices == values);
}

inline void check_error(const TensorSet& files, const std::string& words, const MappingRequest& request = {}) {
  const MappingProposal proposal = propose_mapping(files, request);
  std::string message;
  if (proposal.error) {
    message = proposal.error->message;
  } else {
    const Result<Session> session = apply_mapping(files, proposal.mapping, "t");
    REQUIRE_FALSE(session.ok());
    message = session.error().message;
  }
  const bool says_it = message.find(words) != std::string::npos;
  CHECK_MESSAGE(says_it, message << " should say: " << words);
}

}  // namespace qkv::test
