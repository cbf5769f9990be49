(function () {
  var root = document.documentElement;
  function remember(key, value) { try { localStorage.setItem(key, value); } catch (error) { /* a file without storage */ } }
  function recall(key) { try { return localStorage.getItem(key); } catch (error) { return null; } }
  var language = recall("firstdrift-language") || (/^zh/.test(navigator.language) ? "zh" : "en");
  var scheme = recall("firstdrift-scheme");
  function speak(chosen) { root.dataset.language = chosen; root.lang = chosen; }
  speak(language);
  if (scheme) { root.dataset.scheme = scheme; }
  document.getElementById("language").addEventListener("click", function () {
    speak(root.dataset.language === "zh" ? "en" : "zh");
    remember("firstdrift-language", root.dataset.language);
  });
  document.getElementById("scheme").addEventListener("click", function () {
    var isDark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.scheme = isDark ? "light" : "dark";
    remember("firstdrift-scheme", root.dataset.scheme);
  });
  var before;
  addEventListener("beforeprint", function () { before = root.dataset.scheme; root.dataset.scheme = "light"; });
  addEventListener("afterprint", function () {
    if (before) { root.dataset.scheme = before; } else { delete root.dataset.scheme; }
  });
}());
