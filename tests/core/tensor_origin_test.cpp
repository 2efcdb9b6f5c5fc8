// A session remembers the tensors that it was read from: in the session file, and when they are opened again.
#include "core/session/tensor_origin.h"

#include "core/session/bfloat16_bits.h"
#include "core/session/session_file.h"
#include "tests/core/mapping_support.h"
#include "tests/support/bfloat16_file.h"

using namespace qkv;
using namespace qkv::test;

namespace {

NamedTensors on_disk(const fs::path& path) {
  Result<TensorFile> file = TensorFile::open(path);
  REQUIRE_MESSAGE(file.ok(), path);
  return {path.filename().string(), std::move(file).value(), path};
}

fs::path write_arrays(const TempFolder& folder, const std::string& name, const std::vector<NamedArray>& arrays) {
  const Result<Bytes> bytes = npz_bytes(arrays);
  REQUIRE(bytes.ok());
  return folder.write(name, bytes.value());
}

// Three layers in the way of GPT-2, and x.
std::vector<NamedArray> model() {
  std::vector<NamedArray> arrays = {any_array("x", {5, 8}, 1)};
  for (const std::string layer : {"0", "1", "2"}) {
    arrays.push_back(any_array("h." + layer + ".attn.c_attn.weight", {8, 24}, layer[0]));
  }
  return arrays;
}

MappingRequest heads_and_layer(int heads, int layer) {
  MappingRequest request;
  request.heads = heads;
  request.layer = layer;
  return request;
}

Session read_back(const fs::path& path) {
  Result<Session> session = read_session(path);
  REQUIRE_MESSAGE(session.ok(), (session.ok() ? "" : session.error().message));
  return std::move(session).value();
}

void check_same_origin(const TensorOrigin& a, const TensorOrigin& b) {
  REQUIRE(a.files.size() == b.files.size());
  for (std::size_t i = 0; i < a.files.size(); ++i) {
    CHECK(a.files[i].path == b.files[i].path);
    CHECK(a.files[i].bfloat16 == b.files[i].bfloat16);
  }
  CHECK(a.mapping.heads == b.mapping.heads);
  CHECK(a.mapping.kv_heads == b.mapping.kv_heads);
  REQUIRE(a.mapping.tensors.size() == b.mapping.tensors.size());
  for (std::size_t i = 0; i < a.mapping.tensors.size(); ++i) {
    const MappedTensor &mine = a.mapping.tensors[i], &theirs = b.mapping.tensors[i];
    CHECK(mine.role == theirs.role);
    CHECK(mine.file == theirs.file);
    CHECK(mine.name == theirs.name);
    CHECK(mine.reading.layout == theirs.reading.layout);
    CHECK(mine.reading.layer == theirs.reading.layer);
    CHECK(mine.reading.batch == theirs.reading.batch);
    CHECK(mine.reading.heads == theirs.reading.heads);
    CHECK(mine.reading.kv_heads == theirs.reading.kv_heads);
  }
}

std::map<std::string, std::string> words_of(const Session& session) {
  std::map<std::string, std::string> words;
  for (const OriginNow& now : check_origin(session)) {
    words[std::string(role_key(now.role))] = now.words;
    CHECK(now.is_same == (now.words == "as in the file"));
  }
  return words;
}

}  // namespace

TEST_CASE("origin: a saved session names its tensors by paths from where it is") {
  const TempFolder folder;
  fs::create_directories(folder.path() / "data");
  fs::create_directories(folder.path() / "saved" / "deep");
  const fs::path weights = write_arrays(folder, "data/model.npz", model());
  const fs::path hidden = write_arrays(folder, "data/hidden.npz", {any_array("hidden_states", {2, 5, 8}, 7)});
  MappingRequest request = heads_and_layer(2, 1);
  request.tensors[Role::kX] = "hidden_states";
  request.batch = 1;
  const Session session = opened({on_disk(weights), on_disk(hidden)}, request);
  REQUIRE(session.origin != nullptr);
  CHECK(session.origin->files.size() == 2);

  const fs::path place = folder.path() / "saved" / "deep" / "s.qkv.json";
  REQUIRE(write_session(session, place).ok());
  const Result<Bytes> written = read_file(place);
  REQUIRE(written.ok());
  const std::string_view json = as_text(written.value());
  CHECK(
      json.find(
          R"json("x": {"file": "../../data/hidden.npz", "name": "hidden_states", "layout": "BND", "batch": 1})json") !=
      std::string_view::npos);
  CHECK(json.find(
            R"json("wk": {"file": "../../data/model.npz", "name": "h.1.attn.c_attn.weight", "layout": "I(3O)")json") !=
        std::string_view::npos);

  const Session back = read_back(place);
  check_same(session, back);
  REQUIRE(back.origin != nullptr);
  check_same_origin(*session.origin, *back.origin);
  CHECK(words_of(back) ==
        std::map<std::string, std::string>{
            {"x", "as in the file"}, {"wq", "as in the file"}, {"wk", "as in the file"}, {"wv", "as in the file"}});

  // A folder that is a link to another is not left through its other end.
  fs::create_directories(folder.path() / "far" / "away" / "there");
  fs::create_directory_symlink(folder.path() / "far" / "away" / "there", folder.path() / "link");
  const fs::path linked = folder.path() / "link" / "s.qkv.json";
  REQUIRE(write_session(session, linked).ok());
  check_same_origin(*session.origin, *read_back(linked).origin);

  // From another folder the same files have other names.
  const fs::path other = folder.path() / "data" / "s.qkv.json";
  REQUIRE(write_session(back, other).ok());
  const Result<Bytes> moved = read_file(other);
  REQUIRE(moved.ok());
  CHECK(as_text(moved.value()).find("\"file\": \"hidden.npz\"") != std::string_view::npos);
  check_same_origin(*session.origin, *read_back(other).origin);
}

TEST_CASE("origin: numbers of the session count where its files say something else") {
  const TempFolder folder;
  const fs::path tensors = write_arrays(
      folder, "t.npz", {any_array("q", {2, 4, 3}, 1), any_array("k", {2, 4, 3}, 2), any_array("v", {2, 4, 3}, 3)});
  Session session = opened({on_disk(tensors)});
  find_input(session, {MatrixKind::kQ, 1})->edit()(2, 1) = 77;
  const fs::path place = folder.path() / "s.qkv.json";
  REQUIRE(write_session(session, place).ok());
  const Session edited = read_back(place);
  CHECK(find_input(edited, {MatrixKind::kQ, 1})->get()(2, 1) == 77);
  CHECK(words_of(edited)["q"] == "1 of 24 cells differs from the file's");
  CHECK(words_of(edited)["k"] == "as in the file");

  // The file holds something else now.
  write_arrays(folder, "t.npz",
               {any_array("q", {2, 4, 3}, 1), any_array("k", {4, 3}, 2), any_array("v", {2, 5, 3}, 3)});
  const Session changed = read_back(place);
  check_same(edited, changed);
  CHECK(words_of(changed)["k"].starts_with("the file has changed: \"k\" has the shape (4, 3), but k as HND"));
  CHECK(words_of(changed)["v"] == "of another shape than in the file");
  write_arrays(folder, "t.npz", {any_array("q", {2, 4, 3}, 1)});
  CHECK(words_of(changed)["v"] == "the file has changed: there is no tensor \"v\"");

  fs::rename(tensors, folder.path() / "away.npz");
  const Session alone = read_back(place);
  check_same(edited, alone);
  for (const auto& said : words_of(alone)) {
    CHECK_MESSAGE(said.second == "the file is not in " + folder.path().string(), said.first);
  }
  folder.write("t.npz", "no tensors");
  CHECK(words_of(alone)["q"].starts_with("the file cannot be read: "));

  Session without = alone;
  without.origin.reset();
  CHECK(check_origin(without).empty());
  without.problem.source = WeightsSource{{SharedMatrix(Matrix::Identity(4, 4))}};
  without.origin = alone.origin;
  fs::rename(folder.path() / "away.npz", tensors);
  CHECK(words_of(without)["q"] == "no longer in the session");
}

TEST_CASE("origin: only files that can be gone back to are remembered") {
  const NamedTensors pipe = file_of("pipe", {any_array("attn", {2, 4, 4})});
  CHECK(opened(TensorSet{pipe}).origin == nullptr);
}

TEST_CASE("origin: the fewest words that propose a mapping again") {
  const TensorSet files = set_of(model());
  const auto mapping_of = [&](const MappingRequest& request) {
    const MappingProposal proposal = propose_mapping(files, request);
    REQUIRE(!proposal.error);
    REQUIRE(proposal.questions.empty());
    return proposal.mapping;
  };
  // A layer is said by its number, so that another can be chosen.
  MappingRequest said = request_of(files, mapping_of(heads_and_layer(4, 2)));
  CHECK(said.layer == 2);
  CHECK(said.heads == 4);
  CHECK(said.tensors.empty());
  CHECK(said.layouts.empty());
  said.layer = 1;
  CHECK(mapping_of(said).find(Role::kWq)->name == "h.1.attn.c_attn.weight");

  // What a person corrected is said by name, the rest is not.
  MappingRequest corrected = heads_and_layer(2, 0);
  corrected.tensors = {{Role::kWv, "h.2.attn.c_attn.weight"}};
  const TensorMapping mapping = mapping_of(corrected);
  REQUIRE(mapping.find(Role::kWv)->name == "h.2.attn.c_attn.weight");
  said = request_of(files, mapping);
  CHECK(said.tensors == corrected.tensors);
  CHECK(mapping_of(said).find(Role::kWv)->name == "h.2.attn.c_attn.weight");
  CHECK(mapping_of(said).find(Role::kWq)->name == "h.0.attn.c_attn.weight");

  // A layout that was asked for.
  const TensorSet asked = set_of({any_array("query", {5, 3, 4}, 1), any_array("key", {5, 3, 4}, 2),
                                  any_array("value", {5, 3, 4}, 3), any_array("other", {5, 3, 4}, 4)});
  MappingProposal proposal = propose_mapping(asked, layouts("q=NHD,k=NHD,v=NHD"));
  REQUIRE(proposal.questions.empty());
  said = request_of(asked, proposal.mapping);
  CHECK(said.tensors.empty());
  CHECK(said.layouts.at(Role::kK) == parse_layout("NHD").value());
  CHECK(propose_mapping(asked, said).questions.empty());

  // Names that say nothing are all said.
  MappingRequest named;
  named.tensors = {{Role::kQ, "other"}, {Role::kK, "other"}, {Role::kV, "value"}};
  named.layout = parse_layout("HND").value();
  proposal = propose_mapping(asked, named);
  REQUIRE(proposal.questions.empty());
  said = request_of(asked, proposal.mapping);
  const MappingProposal again = propose_mapping(asked, said);
  REQUIRE(again.questions.empty());
  CHECK(again.mapping.find(Role::kQ)->name == "other");
  CHECK(again.mapping.find(Role::kK)->name == "other");
  CHECK(again.mapping.find(Role::kV)->name == "value");
}

TEST_CASE("origin: opened once more, its files come back as they were asked for") {
  const TempFolder folder;
  const fs::path weights = write_arrays(folder, "model.npz", model());
  const fs::path hidden = write_arrays(folder, "hidden.npz", {any_array("hidden_states", {5, 8}, 7)});
  MappingRequest request = heads_and_layer(2, 2);
  request.tensors[Role::kX] = "hidden_states";
  const Session session = opened({on_disk(weights), on_disk(hidden)}, request);
  REQUIRE(is_from(*session.origin, weights));
  CHECK(is_from(*session.origin, hidden));
  CHECK_FALSE(is_from(*session.origin, folder.path() / "other.npz"));
  for (const fs::path& first : {weights, hidden}) {
    const Reopened again = reopen(*session.origin, on_disk(first));
    CHECK(again.missing.empty());
    REQUIRE(again.files.size() == 2);
    CHECK(again.files.front().path == first);
    check_same(session, opened(again.files, again.request));
  }

  // Without the other file, what is left of the mapping is proposed, and what is missing is said.
  fs::remove(hidden);
  const Reopened alone = reopen(*session.origin, on_disk(weights));
  REQUIRE(alone.missing.size() == 1);
  CHECK(alone.missing.front() == "hidden.npz: the file is not in " + hidden.parent_path().string());
  CHECK(alone.files.size() == 1);
  CHECK(alone.request.layer == 2);

  // Moved: known by its name where there is nothing in its old place.
  fs::create_directories(folder.path() / "new");
  fs::rename(weights, folder.path() / "new" / "model.npz");
  CHECK(is_from(*session.origin, folder.path() / "new" / "model.npz"));
  const fs::path changed = write_arrays(folder, "model.npz", {any_array("x", {5, 8}, 1)});
  CHECK_FALSE(is_from(*session.origin, folder.path() / "new" / "model.npz"));
  const Reopened other = reopen(*session.origin, on_disk(changed));
  CHECK(other.missing.size() == 4);
  CHECK(std::ranges::count(other.missing, "model.npz: there is no h.2.attn.c_attn.weight any more") == 3);
}

TEST_CASE("origin: bfloat16 numbers in 16-bit integers, but not tokens") {
  const TempFolder folder;
  std::vector<BitsArray> arrays = qkv_bits(4, 3);
  arrays.push_back({"tokens", {4}, {1, 2, 3, 4}});
  const fs::path path = folder.write("bits.safetensors", safetensors_of_bits(arrays));
  const NamedTensors stored = on_disk(path);
  CHECK(bfloat16_candidates(stored.file) == std::vector<std::string>{"q", "k", "v"});
  const NamedTensors read = with_bfloat16(stored);
  CHECK(read.bfloat16 == std::vector<std::string>{"q", "k", "v"});
  CHECK(read.file.find("q")->dtype == "bfloat16");
  CHECK(read.file.find("tokens")->dtype == "uint16");
  CHECK(stored.file.find("q")->dtype == "uint16");
  CHECK(read.file.read("q").value().values == arrays[0].values);
  CHECK(stored.file.read("q").value().values != arrays[0].values);
  const NamedTensors back = without_bfloat16(read);
  CHECK(back.bfloat16.empty());
  CHECK(back.file.find("q")->dtype == "uint16");
  CHECK(back.file.read("q").value().values == stored.file.read("q").value().values);
  CHECK(read.file.with({{"none"}}).error().message == "there is no array \"none\" to read as bfloat16");

  const Session session = opened({read});
  CHECK(std::get<DirectSource>(session.problem.source).v[0]->coeff(1, 2) == arrays[2].values[5]);
  const fs::path place = folder.path() / "s.qkv.json";
  REQUIRE(write_session(session, place).ok());
  const Session saved = read_back(place);
  check_same_origin(*session.origin, *saved.origin);
  CHECK(words_of(saved)["q"] == "as in the file");
  const Reopened again = reopen(*saved.origin, on_disk(path));
  check_same(session, opened(again.files, again.request));

  // A reference in a session file says it too.
  const std::string q = R"({"file": "bits.safetensors", "name": "q", "bfloat16": true})";
  const Result<Session> by_hand = parse_session(
      R"({"qkvlab": 1, "source": {"kind": "qkv", "q": )" + q + ", \"k\": " + q + ", \"v\": " + q + "}}", folder.path());
  REQUIRE_MESSAGE(by_hand.ok(), (by_hand.ok() ? "" : by_hand.error().message));
  CHECK(std::get<DirectSource>(by_hand.value().problem.source).q[0]->coeff(1, 2) == arrays[0].values[5]);
}

TEST_CASE("origin: every rule of the key mapping") {
  const auto with = [](const std::string& mapping) { return Parts{.extra = "\"mapping\": " + mapping + ", "}.json(); };
  const auto tensor = [&](const std::string& members, const std::string& role = "q") {
    return with("{\"tensors\": {\"" + role + "\": {" + members + "}}}");
  };
  const auto bad = [&](const std::string& json, const std::string& words) {
    check_error(json, ErrorCode::kBadInput, words, "/none");
  };
  bad(with("[]"), "mapping must be an object");
  bad(with("{}"), "the key \"tensors\" is missing in mapping");
  bad(with(R"({"tensors": {}, "layers": 3})"), "unknown key \"layers\" in mapping");
  bad(with(R"({"tensors": {}, "heads": 0})"), "mapping.heads must be a whole number");
  bad(with(R"({"tensors": []})"), "mapping.tensors must be an object");
  const std::string good = R"("file": "a.npz", "name": "q", "layout": "ND")";
  bad(tensor(good, "y"), "mapping.tensors.y is not the name of an input");
  bad(tensor(good, "scores"), "mapping.tensors.scores is not the name of an input");
  bad(tensor(good + ", \"at\": 1"), "unknown key \"at\" in mapping.tensors.q");
  bad(tensor(R"("name": "q", "layout": "ND")"), "the key \"file\" is missing in mapping.tensors.q");
  bad(tensor(R"("file": "a.npz", "layout": "ND")"), "the key \"name\" is missing in mapping.tensors.q");
  bad(tensor(R"("file": "", "name": "q", "layout": "ND")"), "mapping.tensors.q.file is not the path of a file");
  bad(tensor(R"("file": "a\u0000b", "name": "q", "layout": "ND")"), "mapping.tensors.q.file is not the path of a file");
  bad(tensor(R"("file": "a.npz", "name": "q")"), "the key \"layout\" is missing in mapping.tensors.q");
  bad(tensor(R"("file": "a.npz", "name": "q", "layout": "NX")"), "mapping.tensors.q.layout: ");
  bad(tensor(R"("file": "a.npz", "name": "q", "layout": "NN")"), "mapping.tensors.q.layout: ");
  bad(tensor(good + ", \"bfloat16\": 1"), "mapping.tensors.q.bfloat16 must be true or false");
  bad(tensor(good + ", \"layer\": -1"), "mapping.tensors.q.layer must be a whole number");

  // Neither the files nor their number of tensors matter to the numbers.
  const Result<Session> fine = parse_session(tensor(good), "/none");
  REQUIRE_MESSAGE(fine.ok(), (fine.ok() ? "" : fine.error().message));
  REQUIRE(fine.value().origin != nullptr);
  CHECK(fine.value().origin->files.front().path == "/none/a.npz");
  CHECK(check_origin(fine.value()).front().words == "the file is not in /none");
  const std::string written = session_to_json(fine.value());
  CHECK(written.find("\"file\": \"/none/a.npz\"") != std::string::npos);
  CHECK(session_to_json(parse_session(written, {}).value()) == written);
  CHECK(parse_session(with(R"({"tensors": {}})"), {}).value().origin == nullptr);
}

TEST_CASE("session file: text that is no file has nothing beside it") {
  check_error(Parts{.q = R"({"file": "a.npz", "name": "q"})"}.json(), ErrorCode::kBadInput,
              "q: a.npz is looked for beside the session file, but this is no file");
}
