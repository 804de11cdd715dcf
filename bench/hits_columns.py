"""The columns of `hits`, and the values of those that no query of ClickBench depends on.

Names, types and order are those of the published table. A choice is a list of values with their
weights: most of these columns have a few values, of which one is in nearly every row.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

_SHORT, _INT, _LONG, _TEXT = pa.int16(), pa.int32(), pa.int64(), pa.string()
_TIME = pa.timestamp("ms")
_KINDS: Mapping[str, pa.DataType] = {"s": _SHORT, "i": _INT, "l": _LONG, "t": _TEXT, "m": _TIME}
_NAMES = """
WatchID:l JavaEnable:s Title:t GoodEvent:s EventTime:m EventDate:d CounterID:i ClientIP:i
RegionID:i UserID:l CounterClass:s OS:s UserAgent:s URL:t Referer:t IsRefresh:s
RefererCategoryID:s RefererRegionID:i URLCategoryID:s URLRegionID:i ResolutionWidth:s
ResolutionHeight:s ResolutionDepth:s FlashMajor:s FlashMinor:s FlashMinor2:t NetMajor:s NetMinor:s
UserAgentMajor:s UserAgentMinor:t CookieEnable:s JavascriptEnable:s IsMobile:s MobilePhone:s
MobilePhoneModel:t Params:t IPNetworkID:i TraficSourceID:s SearchEngineID:s SearchPhrase:t
AdvEngineID:s IsArtifical:s WindowClientWidth:s WindowClientHeight:s ClientTimeZone:s
ClientEventTime:m SilverlightVersion1:s SilverlightVersion2:s SilverlightVersion3:i
SilverlightVersion4:s PageCharset:t CodeVersion:i IsLink:s IsDownload:s IsNotBounce:s FUniqID:l
OriginalURL:t HID:i IsOldCounter:s IsEvent:s IsParameter:s DontCountHits:s WithHash:s HitColor:t
LocalEventTime:m Age:s Sex:s Income:s Interests:s Robotness:s RemoteIP:i WindowName:i OpenerName:i
HistoryLength:s BrowserLanguage:t BrowserCountry:t SocialNetwork:t SocialAction:t HTTPError:s
SendTiming:i DNSTiming:i ConnectTiming:i ResponseStartTiming:i ResponseEndTiming:i FetchTiming:i
SocialSourceNetworkID:s SocialSourcePage:t ParamPrice:l ParamOrderID:t ParamCurrency:t
ParamCurrencyID:s OpenstatServiceName:t OpenstatCampaignID:t OpenstatAdID:t OpenstatSourceID:t
UTMSource:t UTMMedium:t UTMCampaign:t UTMContent:t UTMTerm:t FromTag:t HasGCLID:s RefererHash:l
URLHash:l CLID:i
"""
SCHEMA = pa.schema(
    (name, _KINDS.get(kind, pa.date32()), False)
    for name, _, kind in (each.partition(":") for each in _NAMES.split())
)

_Choice = Mapping[object, float]
_CHOICES: Mapping[str, _Choice] = {
    "JavaEnable": {1: 0.72, 0: 0.28},
    "CounterClass": {0: 0.86, 1: 0.12, -1: 0.02},
    "RefererCategoryID": {0: 0.9, 16000: 0.05, 9911: 0.05},
    "URLCategoryID": {0: 0.93, 15: 0.07},
    "ResolutionDepth": {32: 0.55, 24: 0.42, 16: 0.03},
    "FlashMajor": {11: 0.66, 10: 0.08, 12: 0.16, 0: 0.1},
    "FlashMinor": {7: 0.45, 8: 0.15, 2: 0.1, 0: 0.3},
    "FlashMinor2": {"700": 0.45, "800": 0.15, "202": 0.1, "0": 0.1, "169": 0.1, "": 0.1},
    "NetMajor": {0: 0.5, 2: 0.3, 3: 0.1, 4: 0.1},
    "NetMinor": {0: 0.6, 7: 0.3, 5: 0.1},
    "CookieEnable": {1: 0.99, 0: 0.01},
    "JavascriptEnable": {1: 0.99, 0: 0.01},
    "IsArtifical": {0: 0.99, 1: 0.01},
    "ClientTimeZone": {135: 0.4, 83: 0.3, 77: 0.2, -1: 0.1},
    "SilverlightVersion1": {5: 0.6, 0: 0.3, 4: 0.1},
    "SilverlightVersion2": {1: 0.6, 0: 0.4},
    "SilverlightVersion3": {20513: 0.5, 0: 0.4, 20125: 0.1},
    "SilverlightVersion4": {0: 0.99, 226: 0.01},
    "PageCharset": {"windows": 0.45, "utf-8": 0.4, "windows-1251;charset": 0.05, "": 0.1},
    "CodeVersion": {1601: 0.5, 1599: 0.2, 1591: 0.2, 1577: 0.1},
    "IsNotBounce": {0: 0.9, 1: 0.1},
    "IsOldCounter": {0: 0.998, 1: 0.002},
    "IsEvent": {0: 0.93, 1: 0.07},
    "IsParameter": {0: 0.97, 1: 0.03},
    "WithHash": {0: 0.97, 1: 0.03},
    "HitColor": {"F": 0.6, "T": 0.2, "5": 0.1, "E": 0.1},
    "Age": {0: 0.35, 50: 0.15, 31: 0.2, 22: 0.2, 16: 0.1},
    "Sex": {0: 0.35, 1: 0.3, 2: 0.35},
    "Income": {0: 0.6, 1: 0.1, 2: 0.2, 3: 0.1},
    "Robotness": {0: 0.85, 11: 0.1, 57: 0.05},
    "WindowName": {-1: 0.9, 1687: 0.1},
    "BrowserLanguage": {"S0": 0.86, "en": 0.1, "uk": 0.04},
    "BrowserCountry": {"h1": 0.86, "US": 0.1, "UA": 0.04},
    "SocialNetwork": {"": 0.998, "vkontakte": 0.002},
    "SocialAction": {"": 0.998, "like": 0.002},
    "HTTPError": {0: 0.99, 404: 0.01},
    "SocialSourceNetworkID": {0: 0.99, 2: 0.01},
    "SocialSourcePage": {"": 0.99, "http://vk.example/wall": 0.01},
    "ParamPrice": {0: 0.998, 990: 0.001, 2490: 0.001},
    "ParamOrderID": {"": 1.0},
    "ParamCurrency": {"NH\x1c": 1.0},
    "ParamCurrencyID": {0: 0.998, 643: 0.002},
    "OpenstatServiceName": {"": 0.995, "market.example": 0.005},
    "OpenstatCampaignID": {"": 0.995, "22;7": 0.005},
    "OpenstatAdID": {"": 0.995, "4411;9": 0.005},
    "OpenstatSourceID": {"": 0.995, "search": 0.005},
    "UTMSource": {"": 0.98, "direct": 0.012, "mail": 0.008},
    "UTMMedium": {"": 0.98, "cpc": 0.02},
    "UTMCampaign": {"": 0.98, "summer": 0.012, "index": 0.008},
    "UTMContent": {"": 0.985, "banner": 0.015},
    "UTMTerm": {"": 0.99, "tickets": 0.01},
    "FromTag": {"": 0.99, "topnews": 0.01},
    "HasGCLID": {0: 0.997, 1: 0.003},
    "DontCountHits": {0: 0.98, 1: 0.02},
    "IsRefresh": {0: 0.86, 1: 0.14},
    "IsLink": {0: 0.93, 1: 0.07},
    "IsDownload": {0: 0.997, 1: 0.003},
    "TraficSourceID": {0: 0.35, -1: 0.3, 1: 0.15, 2: 0.12, 3: 0.04, 6: 0.03, 8: 0.01},
}
_SPREAD = {
    "Interests": 18_000, "URLRegionID": 300, "RefererRegionID": 300, "HistoryLength": 60,
    "SendTiming": 4_000, "DNSTiming": 400, "ConnectTiming": 600, "ResponseStartTiming": 3_000,
    "ResponseEndTiming": 6_000, "FetchTiming": 8_000, "OpenerName": 2_000_000_000, "CLID": 300,
}  # fmt: skip
"""Columns with many values up to a limit; half of their rows have 0."""


def chosen(draw: np.random.Generator, name: str, rows: int) -> pa.Array:
    """Draw values of a column that has a few."""
    values, weights = zip(*_CHOICES[name].items(), strict=True)
    places = draw.choice(len(values), rows, p=np.array(weights) / sum(weights))
    return pa.array(values, SCHEMA.field(name).type).take(pa.array(places))


def plain(draw: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    """Draw all columns that do not depend on others."""
    found = {name: chosen(draw, name, rows) for name in _CHOICES}
    for name, most in _SPREAD.items():
        values = (most * draw.random(rows) ** 3).astype(np.int64) * (draw.random(rows) < 0.5)
        found[name] = pa.array(values).cast(SCHEMA.field(name).type)
    found["GoodEvent"] = pa.array(np.ones(rows, np.int16))
    found["HID"] = pa.array(draw.integers(0, 2**30, rows, np.int32))
    found["Params"] = pa.repeat("", rows)
    return found
