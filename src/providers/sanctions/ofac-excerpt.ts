/**
 * A dated excerpt of the addresses published by the US Treasury's Office of Foreign Assets Control as "Digital
 * Currency Address - ETH" of Specially Designated Nationals. It is incomplete, ages, and does not replace the list:
 * deployments configure a complete current list with `SANCTIONS_LIST`, or a provider (`SCREENING_URL`). Tornado Cash
 * is not included; it was removed from the list on 21 March 2025.
 * @see https://sanctionslist.ofac.treas.gov/Home/SdnList
 */
import type { Sanctions } from './port.ts'

/** Designations from September 2020 to August 2023; excerpted after the removal above. */
const excerpt = {
  name: 'ofac',
  source: 'OFAC, Specially Designated Nationals, Digital Currency Address - ETH (excerpt)',
  date: '2025-03-21',
  addresses: new Set([
    // Lazarus Group, from April 2022 on.
    '0x098b716b8aaf21512996dc57eb0615e2383e2f96',
    '0xa0e1c89ef1a489c9c7de96311ed5ce5d32c20e4b',
    '0x3cffd56b47b7b41c56258d9c7731abadc360e073',
    '0x53b6936513e738f44fb50d2b9476730c0ab3bfc1',
    '0x35fb6f6db4fb05e6a4ce86f2c93691425626d4b1',
    '0xf7b31119c2682c88d88d455dbb9d5932c65cf1be',
    '0x3e37627deaa754090fbfbb8bd226c1ce66d255e9',
    '0x08723392ed15743cc38513c4925f5e6be5c17243',
    // Dmitrii Karasavidi, September 2020.
    '0xd882cfc20f52f2599d84b8e8d58c7fb62cfe344b',
    // Roman Semenov, August 2023.
    '0xdcbeffbecce100cce9e4b153c4e15cb885643193',
    '0x5f48c2a71b2cc96e3f0ccae4e39318ff0dc375b2',
    '0x5a7a51bfb49f190e5a6060a5bc6052ac14a3b59f',
    '0xed6e0a7e4ac94d976eebfb82ccf777a3c6bad921',
    '0x797d7ae72ebddcdea2a346c1834e04d1f8df102b',
    '0x931546d9e66836abf687d2bc64b30407bac8c568',
    '0x43fa21d92141ba9db43052492e0deee5aa5f0a93',
    '0x6be0ae71e6c41f2f9d0d1a3b8d0f75e6f6a0b46e',
  ]),
  names: ['LAZARUS GROUP', 'KARASAVIDI, Dmitrii', 'SEMENOV, Roman'],
}

export function createOfacExcerpt(): Sanctions {
  return { latest: async () => excerpt }
}
