// SPDX-License-Identifier: BSD-2-Clause
// Functions that exceptions cross or end in. Prints how often each began and how often it came to its end.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{
struct Count {
	const char *name;
	int starts, ends;
};
std::vector<Count> counts;

Count &count(const char *name)
{
	for (Count &c : counts)
		if (!std::strcmp(c.name, name))
			return c;
	counts.push_back({ name, 0, 0 });
	return counts.back();
}

// Counts a call; as an end only if the function got there.
template <typename F> void called(const char *name, F f)
{
	count(name).starts++;
	try {
		f();
		count(name).ends++;
	} catch (const std::exception &) {
	}
}
} // namespace

#ifdef __clang__
#define EXPORTED extern "C" __attribute__((noinline, visibility("default")))
#else
#define EXPORTED extern "C" __attribute__((noinline, noipa, visibility("default")))
#endif

EXPORTED int exits_leaf(int x)
{
	if (x % 3 == 0)
		throw std::runtime_error("three");
	return x + 1;
}

// A buffer, so that the stack is checked at the end.
EXPORTED int exits_buffer(int x)
{
	char text[64];

	std::snprintf(text, sizeof(text), "%d", x);
	return exits_leaf(x) + text[0];
}

// Objects are destroyed as an exception passes.
EXPORTED size_t exits_object(int x)
{
	std::string a(static_cast<size_t>(x % 7), 'x'), b = std::to_string(x);

	b += std::to_string(exits_leaf(x));
	return (a + b).size();
}

// Ends normally after an exception.
EXPORTED int exits_catches(int x)
{
	char text[32] = "";

	try {
		std::snprintf(text, sizeof(text), "%d", exits_leaf(x));
	} catch (const std::runtime_error &error) {
		return text[0] + error.what()[0];
	}
	return text[0];
}

// Once more after an exception.
EXPORTED int exits_retries(int x)
{
	std::string tried;

	for (;; x++) {
		try {
			tried += std::to_string(exits_leaf(x));
			return static_cast<int>(tried.size());
		} catch (const std::runtime_error &error) {
			tried += error.what();
		}
	}
}

// Throws another one.
EXPORTED int exits_rethrows(int x)
{
	try {
		return exits_leaf(x);
	} catch (const std::runtime_error &error) {
		if (x % 2)
			throw std::logic_error(std::string(error.what()) + " is odd");
		return 0;
	}
}

EXPORTED int exits_recursive(int x)
{
	volatile char text[40] = { static_cast<char>(x) };

	return x <= 0 ? exits_leaf(1) : text[0] + exits_recursive(x - 1);
}

// Several returns.
EXPORTED int exits_early(const std::string &s)
{
	if (s.empty())
		return 0;
	std::vector<int> v;
	for (char c : s) {
		if (c == 'x')
			return exits_leaf(c);
		v.push_back(c);
	}
	return exits_leaf(v[0]) + static_cast<int>(v.size());
}

static void run()
{
	for (int i = 0; i < 50; i++) {
		called("exits_buffer", [i] { exits_buffer(i); });
		called("exits_object", [i] { exits_object(i); });
		called("exits_catches", [i] { exits_catches(i); });
		called("exits_retries", [i] { exits_retries(i); });
		called("exits_rethrows", [i] { exits_rethrows(i); });
		called("exits_early",
		       [i] { exits_early(std::string(static_cast<size_t>(i % 3), i % 5 ? 'a' : 'x')); });
	}
	exits_recursive(9);
	counts.push_back({ "exits_recursive", 0, 0 }); // a compiler can make a loop of it
	for (const Count &c : counts)
		std::printf("%s %d %d\n", c.name, c.starts, c.ends);
}

int main()
{
	try {
		run();
	} catch (...) {
		return 1;
	}
	return 0;
}
