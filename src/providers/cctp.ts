/**
 * CCTP v2, by which USDC is burned on one chain and minted on another: addresses, interfaces and messages as Circle publishes them.
 * @see https://developers.circle.com/cctp/evm-smart-contracts
 * @see https://developers.circle.com/cctp/technical-guide
 */
import { concat, hexToBigInt, hexToNumber, pad, parseAbi, size, slice, zeroAddress } from 'viem'
import { type ChainName, chainFacts } from '../core/money/chains.ts'
import type { Address, DeliveredMessage, Hex, TransferLog } from './chain/port.ts'

/** TokenMessengerV2 and MessageTransmitterV2, at the same addresses on all main chains, and on all test chains. */
const deployed = {
  main: {
    messenger: '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d',
    transmitter: '0x81D40F21F12A8F0E3252Bccb954D722d4c464B64',
  },
  test: {
    messenger: '0x8FE6B999Dc680CcFDD5Bf7EB0974218be2542DAA',
    transmitter: '0xE737e5cEBEEBa77EFE34D4aa090756590b1CE275',
  },
} as const satisfies Record<string, { messenger: Address; transmitter: Address }>

/** Contracts of the sandbox's local chains. */
export const sandboxMessengerAddress: Address = deployed.test.messenger
export const sandboxTransmitterAddress: Address = deployed.test.transmitter

/** Address that signs attestations in the sandbox. Its private key is keccak256 of `bursar sandbox attester`. */
export const sandboxAttesterAddress: Address = '0xE899d92e0182e3b5De2D3a9fa80E2201be17C382'

/** Address that receives the bridge's fees in the sandbox: the last 20 bytes of keccak256 of `bursar sandbox bridge fees`. */
export const sandboxFeeRecipient: Address = '0xCB5CC6AC06B31E08fA1Cfc003D556EA965ed2487'

/** @property domain Circle's number of the chain. */
export interface CctpContracts {
  readonly domain: number
  readonly messenger: Address
  readonly transmitter: Address
}

export function cctpOn(name: ChainName): CctpContracts {
  const { cctpDomain: domain, isTest } = chainFacts(name)
  return { domain, ...(isTest ? deployed.test : deployed.main) }
}

/** How final a burn must be: `fast` as soon as it is confirmed, `standard` when it is finalized. */
export const finality = { fast: 1_000, standard: 2_000 } as const

export const cctpAbi = parseAbi([
  'function localDomain() view returns (uint32)',
  'function remoteTokenMessengers(uint32 domain) view returns (bytes32)',
  'function usedNonces(bytes32 nonce) view returns (uint256)',
  'function receiveMessage(bytes message, bytes attestation) returns (bool)',
])

/** Logged for each message that leaves. */
export const [messageSentEvent, messageReceivedEvent] = parseAbi([
  'event MessageSent(bytes message)',
  'event MessageReceived(address indexed caller, uint32 sourceDomain, bytes32 indexed nonce, bytes32 sender, uint32 indexed finalityThresholdExecuted, bytes messageBody)',
])

/**
 * A burn, as the body of its message says. Addresses are in lower case.
 * @property sender who burned. @property expirationBlock of the destination, from which on it cannot be minted; 0: never.
 */
export interface BurnBody {
  readonly token: Address
  readonly recipient: Address
  readonly units: bigint
  readonly sender: Address
  readonly maxFee: bigint
  readonly feeExecuted: bigint
  readonly expirationBlock: bigint
}

/** A message about a burn. @property nonce zero until the attester fills it in, with {@link finality}. */
export interface BurnMessage {
  readonly source: number
  readonly destination: number
  readonly nonce: Hex
  readonly recipient: Address
  readonly minFinality: number
  readonly finality: number
  readonly burn: BurnBody
}

/** Offsets in the header of a message, version 2. */
const at = {
  source: 4,
  destination: 8,
  nonce: 12,
  sender: 44,
  recipient: 76,
  caller: 108,
  minFinality: 140,
  finality: 144,
  body: 148,
} as const

/** Offsets in the body of a burn, version 2. */
const inBody = {
  token: 4,
  recipient: 36,
  units: 68,
  sender: 100,
  maxFee: 132,
  feeExecuted: 164,
  expirationBlock: 196,
  hook: 228,
} as const

/** Largest message that is read. */
const MAX_BYTES = 4_096
const VERSION = 1

/** Parses a message; undefined for one that is not of a burn by version 2. */
export function parseBurnMessage(message: Hex): BurnMessage | undefined {
  const bytes = size(message)
  if (bytes < at.body + inBody.hook || bytes > MAX_BYTES) return undefined
  if (hexToNumber(slice(message, 0, at.source)) !== VERSION) return undefined
  const burn = parseBurnBody(slice(message, at.body))
  const recipient = toAddress(slice(message, at.recipient, at.caller))
  if (burn === undefined || recipient === undefined) return undefined
  return {
    source: hexToNumber(slice(message, at.source, at.destination)),
    destination: hexToNumber(slice(message, at.destination, at.nonce)),
    nonce: slice(message, at.nonce, at.sender),
    recipient,
    minFinality: hexToNumber(slice(message, at.minFinality, at.finality)),
    finality: hexToNumber(slice(message, at.finality, at.body)),
    burn,
  }
}

export function parseBurnBody(body: Hex): BurnBody | undefined {
  if (size(body) < inBody.hook || hexToNumber(slice(body, 0, inBody.token)) !== VERSION) return undefined
  const token = toAddress(slice(body, inBody.token, inBody.recipient))
  const recipient = toAddress(slice(body, inBody.recipient, inBody.units))
  const sender = toAddress(slice(body, inBody.sender, inBody.maxFee))
  if (token === undefined || recipient === undefined || sender === undefined) return undefined
  return {
    token,
    recipient,
    units: hexToBigInt(slice(body, inBody.units, inBody.sender)),
    sender,
    maxFee: hexToBigInt(slice(body, inBody.maxFee, inBody.feeExecuted)),
    feeExecuted: hexToBigInt(slice(body, inBody.feeExecuted, inBody.expirationBlock)),
    expirationBlock: hexToBigInt(slice(body, inBody.expirationBlock, inBody.hook)),
  }
}

/** What an attester fills in. */
interface Attested {
  readonly nonce: Hex
  readonly finality: number
  readonly feeExecuted: bigint
  readonly expirationBlock: bigint
}

/** Fills in what an attester says of a message. */
export function fillInMessage(message: Hex, filled: Attested): Hex {
  const word = (units: bigint) => pad(`0x${units.toString(16)}`, { size: 32 })
  return concat([
    slice(message, 0, at.nonce),
    filled.nonce,
    slice(message, at.sender, at.finality),
    pad(`0x${filled.finality.toString(16)}`, { size: 4 }),
    slice(message, at.body, at.body + inBody.feeExecuted),
    word(filled.feeExecuted),
    word(filled.expirationBlock),
    // A burn without a hook ends here.
    ...(size(message) > at.body + inBody.hook ? [slice(message, at.body + inBody.hook)] : []),
  ])
}

const nothing: Attested = {
  nonce: pad('0x', { size: 32 }),
  finality: 0,
  feeExecuted: 0n,
  expirationBlock: 0n,
}

/** Checks whether two messages are the same but for what an attester fills in. */
export function isSameBurn(one: Hex, other: Hex): boolean {
  if (parseBurnMessage(one) === undefined || parseBurnMessage(other) === undefined) return false
  return fillInMessage(one, nothing).toLowerCase() === fillInMessage(other, nothing).toLowerCase()
}

/** Checks whether a message is from Circle’s contract on a chain. Anybody can send messages, and write a burn into them. */
export function isFromMessenger({ source, sender }: DeliveredMessage, name: ChainName): boolean {
  const { domain, messenger } = cctpOn(name)
  return source === domain && sender.toLowerCase() === pad(messenger, { size: 32 }).toLowerCase()
}

/**
 * Finds the mint of a delivered burn: the last of its amount before the message's own log. Others who mint the token may have minted
 * in the same transaction. @param token lower case, as `recipient` of the burn is.
 */
export function findMint(
  transfers: readonly TransferLog[],
  { after, position: end }: DeliveredMessage,
  { burn, token }: { readonly burn: BurnBody; readonly token: Address },
): TransferLog | undefined {
  return transfers.findLast(
    ({ position, from, to, units, ...log }) =>
      position > after &&
      position < end &&
      from === zeroAddress &&
      to === burn.recipient &&
      units === burn.units - burn.feeExecuted &&
      log.token === token,
  )
}

/** Undefined for a word that is no EVM address. */
function toAddress(word: Hex): Address | undefined {
  if (hexToBigInt(slice(word, 0, 12)) !== 0n) return undefined
  return `0x${slice(word, 12).slice(2).toLowerCase()}`
}
