// The mapping flags of `diff`: which of the two files each is about.
#include "core/tensor_io/npz.h"
#include "core/tensor_io/tensor_file.h"
#include "tests/cli/support.h"

using namespace qkv;
using namespace qkv::test;

namespace {

const std::string kModel = kData + "use_lite/";

void check_equal(const std::vector<std::string>& words, const std::string& part) {
  const Finished finished = qkvlab(words);
  CHECK(finished.exit_code == 0);
  CHECK(finished.err == "");
  const bool says_it = finished.out.find(part) != std::string::npos;
  CHECK_MESSAGE(says_it, finished.out << " should say: " << part);
}

// The model's attention of both layers as [layers, heads, N, N].
std::string write_attentions(const TempFolder& folder) {
  const Result<TensorFile> file = TensorFile::open(kModel + "sentence_0.npz");
  REQUIRE(file.ok());
  std::vector<float> values;
  std::vector<std::uint64_t> shape = {2};
  for (const std::string name : {"l0.attn", "l1.attn"}) {
    const Result<Tensor> attn = file.value().read(name);
    REQUIRE(attn.ok());
    values.insert(values.end(), attn.value().values.begin(), attn.value().values.end());
    if (shape.size() == 1) shape.insert(shape.end(), attn.value().shape.begin(), attn.value().shape.end());
  }
  const Result<Bytes> bytes = npz_bytes({{"attentions", shape, std::move(values)}});
  REQUIRE(bytes.ok());
  const std::string path = folder / "attentions.npz";
  write_text(path, as_text(bytes.value()));
  return path;
}

}  // namespace

TEST_CASE("diff: inputs are of FILE, results of OTHER, and a layer is of both") {
  const TempFolder folder;
  const std::string theirs = write_attentions(folder), sentence = kModel + "sentence_0.npz";
  for (const std::string layer : {"0", "1"}) {
    check_equal({"diff", sentence, theirs, "--layer", layer, "--map", "attn=attentions"},
                "attn (theirs: attentions[" + layer + "])");
    check_equal({"diff", sentence, theirs, "--layer", layer, "--map", "attn=attentions,q=l" + layer + ".q", "--layout",
                 "attn=LHNN"},
                "attn (theirs: attentions)");
  }
  CHECK(qkvlab({"diff", sentence, theirs, "--layer", "1", "--map", "attn=attentions,q=l1.k"}).exit_code == 1);
  // FILE has one layer alone: only OTHER's is chosen.
  const std::string one = folder / "layer1.npz";
  check_silent(qkvlab({"run", sentence, "--layer", "1", "-o", one}));
  check_equal({"diff", one, theirs, "--layer", "1", "--map", "attn=attentions"}, "attn (theirs: attentions[1])");
  // OTHER's is not: the model's own names.
  check_equal({"diff", sentence, one, "--layer", "1"}, "attn");
  // The weights of FILE's model in a file of their own.
  check_equal({"diff", sentence, theirs, "--with", kModel + "weights_layer1.npz", "--layer", "1", "--map",
               "attn=attentions", "--tolerance", "1e-4"},
              "attn (theirs: attentions[1])");
}

TEST_CASE("diff: a flag that is for neither file, or could be for both, is refused in one line") {
  const TempFolder folder;
  const std::string theirs = write_attentions(folder), sentence = kModel + "sentence_0.npz";
  check_refused(qkvlab({"diff", sentence, theirs, "--layout", "HND"}), 2,
                "--layout HND: both files are tensors, and it may be of either: say whose axes it is, q=HND for FILE's "
                "inputs or attn=… for OTHER's results");
  check_refused(qkvlab({"diff", "cat_sleeps", "worked_example", "--layer", "1"}), 2,
                "--layer: each file is a session, which says itself what is what");
  check_refused(qkvlab({"diff", "cat_sleeps", theirs, "--heads", "2"}), 2, "--heads: FILE is a session");
  check_refused(qkvlab({"diff", sentence, "cat_sleeps", "--map", "attn=attentions"}), 2,
                "--map attn=attentions: OTHER is a session");
  check_refused(qkvlab({"diff", sentence, theirs, "--map", "attn=none"}), 3, "there is no array \"none\" for attn");
  check_refused(qkvlab({"diff", "worked_example", theirs, "--batch", "1", "--name", "attentions[0]=attn"}), 2,
                "--batch: no array has an axis for it");
  check_refused(qkvlab({"diff", sentence, theirs, "--layer", "5", "--map", "attn=attentions"}), 3,
                "there is no layer 5");
  check_refused(qkvlab({"diff", folder / "none.npz", theirs, "--layer", "1"}), 3, "none.npz: no such file");
}
