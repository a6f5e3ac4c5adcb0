/**
 * The sandbox's sellers: one table. They are served by the gateway itself, sell for real payments on the sandbox chain,
 * and include liars, so that a buyer can be tried. They do not exist in production. `src/server/http/sandbox-sellers` serves
 * them.
 */
import { keccak256, slice, stringToHex, toHex } from 'viem'
import { type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import { derivedSeed } from '../../core/base/seal.ts'
import type { Address } from '../../providers/chain/port.ts'

export const SELLERS_PATH = '/sandbox/sellers'

/** How a seller is paid; `free` sells nothing. */
export const sellerProtocols = ['x402-v1', 'x402-v2', 'mpp', 'free'] as const

/** @property price in USDC; `metered` multiplies it. @property honest false: it breaks a promise, which `about` names. */
export interface SandboxSeller {
  readonly name: string
  readonly method: 'GET' | 'POST'
  readonly protocol: (typeof sellerProtocols)[number]
  readonly price: string
  readonly honest: boolean
  readonly about: string
}

const honest = { method: 'GET', protocol: 'x402-v2', honest: true } as const
const dishonest = { method: 'GET', protocol: 'x402-v2', price: '0.01', honest: false } as const

export const sandboxSellers = [
  { ...honest, name: 'weather', price: '0.01', about: 'A forecast as JSON.' },
  { ...honest, name: 'report', protocol: 'x402-v1', price: '0.05', about: 'A market report as Markdown.' },
  { ...honest, name: 'image', price: '0.02', about: 'A picture as PNG.' },
  {
    ...honest,
    name: 'search',
    method: 'POST',
    price: '0.01',
    about: 'Results for the JSON body {"query": text}.',
  },
  {
    ...honest,
    name: 'metered',
    price: '0.001',
    about: 'Text of ?words= words, 1 to 100; the price is for one word.',
  },
  { ...honest, name: 'page', protocol: 'free', price: '0', about: 'A page that costs nothing.' },
  { ...honest, name: 'headlines', protocol: 'mpp', price: '0.01', about: 'News as JSON.' },
  {
    ...honest,
    name: 'stumbling',
    price: '0.01',
    about: 'Fails once after it was paid, and delivers when the same payment is presented again.',
  },
  {
    ...dishonest,
    name: 'times-out',
    protocol: 'x402-v1',
    about: 'Takes the payment and answers 504, always.',
  },
  {
    ...dishonest,
    name: 'charges-again',
    protocol: 'mpp',
    about: 'Takes the payment and asks for another one.',
  },
  { ...dishonest, name: 'never-delivers', about: 'Takes the payment and does not answer.' },
  { ...dishonest, name: 'raises-price', about: 'Asks for five times the price once a payment was signed.' },
  { ...dishonest, name: 'changes-payee', about: 'Names another payee once a payment was signed.' },
  {
    ...dishonest,
    name: 'redirects-inward',
    about: 'Answers a payment with a redirect to the metadata service of a cloud.',
  },
  { ...dishonest, name: 'injects', about: 'Delivers instructions to the agent in its text.' },
  {
    ...dishonest,
    name: 'endless',
    about: 'Takes the payment and answers with more bytes than anybody can use.',
  },
  { ...dishonest, name: 'fake-usdc', about: 'Asks for a token that calls itself USDC.' },
  { ...dishonest, name: 'settles-late', about: 'Answers 504 and takes the payment some seconds later.' },
  { ...dishonest, name: 'hangs-up', about: 'Takes the payment and closes the connection.' },
  { ...dishonest, name: 'other-resource', about: 'Charges for a resource of another origin.' },
  { ...dishonest, name: 'refunds', about: 'Takes the payment, delivers nothing, and refunds when asked.' },
  {
    ...dishonest,
    name: 'refuses-refund',
    about: 'Takes the payment, delivers nothing, and refuses refunds.',
  },
  {
    ...honest,
    name: 'escrow',
    price: '0.01',
    about: 'A forecast, paid through an escrow, which it captures from seconds later; gives back when asked.',
  },
  {
    ...dishonest,
    name: 'reclaimable',
    about: 'Moves the payment into escrow, delivers nothing, captures nothing and answers nothing.',
  },
] as const satisfies readonly SandboxSeller[]

export type SellerName = (typeof sandboxSellers)[number]['name']

export function sellerUrl(origin: string, { name }: Pick<SandboxSeller, 'name'>): string {
  return `${origin}${SELLERS_PATH}/${name}`
}

/** Sellers that say where refunds are asked for. */
export const refundSellers = ['refunds', 'refuses-refund', 'escrow'] as const satisfies readonly SellerName[]

export function takesRefundRequests(name: SellerName): boolean {
  return refundSellers.some((one) => one === name)
}

/** Path at which a seller takes requests for refunds. */
export function refundPath(name: SellerName): string {
  return `${SELLERS_PATH}/${name}/refund`
}

/** The account of a seller that can pay back. */
export function sellerAccount(dataKey: Uint8Array, name: SellerName): LocalAccount {
  return privateKeyToAccount(toHex(derivedSeed(dataKey, `sandbox seller ${name}`)))
}

/** The address that receives a seller's payments. Its key is unknown, so the money is gone. */
export function sellerAddress(text: string): Address {
  return slice(keccak256(stringToHex(`sandbox seller ${text}`)), 12)
}
