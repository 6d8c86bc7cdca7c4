"""The English names of languages, by which a model is told what to write in.

A library for this (`langcodes` with `language_data`) brings megabytes of names; a summary is asked
for in the few dozen languages that models write well, and a model knows any other by its tag.
"""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "de-ch": "Swiss Standard German",
    "el": "Greek",
    "en": "English",
    "en-gb": "British English",
    "en-us": "American English",
    "es": "Spanish",
    "es-419": "Latin American Spanish",
    "es-mx": "Mexican Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fil": "Filipino",
    "fr": "French",
    "fr-ca": "Canadian French",
    "ga": "Irish",
    "gl": "Galician",
    "gu": "Gujarati",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "hy": "Armenian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ka": "Georgian",
    "kk": "Kazakh",
    "kn": "Kannada",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "ml": "Malayalam",
    "mr": "Marathi",
    "ms": "Malay",
    "nb": "Norwegian Bokmål",
    "nl": "Dutch",
    "nn": "Norwegian Nynorsk",
    "no": "Norwegian",
    "pa": "Punjabi",
    "pl": "Polish",
    "pt": "Portuguese",
    "pt-br": "Brazilian Portuguese",
    "pt-pt": "European Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sr-latn": "Serbian in Latin script",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "te": "Telugu",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "uz": "Uzbek",
    "vi": "Vietnamese",
    "zh": "Chinese",
    "zh-cn": "Simplified Chinese",
    "zh-hans": "Simplified Chinese",
    "zh-hant": "Traditional Chinese",
    "zh-hk": "Traditional Chinese",
    "zh-mo": "Traditional Chinese",
    "zh-sg": "Simplified Chinese",
    "zh-tw": "Traditional Chinese",
}
"""English names by tag (RFC 5646), in lower case."""


def language_name(tag: str) -> str:
    """Return the English name for a tag: that of the longest known beginning of it, such as German
    for `de-AT`, or the tag itself where none is known."""
    subtags = tag.lower().split("-")
    for count in range(len(subtags), 0, -1):
        if name := LANGUAGES.get("-".join(subtags[:count])):
            return name
    return tag
