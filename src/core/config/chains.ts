/** Configuration of the chains: their names, their nodes, and the gateway's keys on them. */
import { z } from 'zod'
import { type ChainName, chainFacts, chainNames, isChainName, nameRpcVariable } from '../money/chains.ts'
import { privateKey } from './keys.ts'
import { list } from './list.ts'

const nodeUrl = z.url({ protocol: /^https?$/, abort: true })

const DEFAULT_CHAIN = 'base-sepolia'

/** Variables with the nodes' URLs, which may contain API keys. */
export const rpcVariables = chainNames.map(nameRpcVariable)

export const chainVariables = {
  CHAIN: z.enum(['anvil', 'simulated']).default('anvil'),
  CHAINS: list
    .superRefine((names, context) => {
      for (const name of names.filter((text) => !isChainName(text)))
        context.addIssue({ code: 'custom', message: `"${name}" is not one of ${chainNames.join(', ')}` })
      for (const name of new Set(names.filter((text, at) => names.indexOf(text) < at)))
        context.addIssue({ code: 'custom', message: `names ${name} twice` })
    })
    .optional(),
  CHAIN_RPC_URL: nodeUrl.optional(),
  ...Object.fromEntries(rpcVariables.map((name) => [name, nodeUrl.optional()])),
  CHAIN_SPONSOR_KEY: privateKey.optional(),
  CHAIN_OWNER_KEY: privateKey.optional(),
  CHAIN_OWNER_KEY_PREVIOUS: privateKey.optional(),
  ANVIL_BIN: z.string().optional(),
  ANCHOR_CHAIN: z.enum(chainNames).optional(),
  X402_CODE_HASHES: list
    .superRefine((hashes, context) => {
      for (const hash of hashes.filter((text) => !isCodeHash(text)))
        context.addIssue({ code: 'custom', message: `"${hash}" is not 0x and 64 hex digits` })
    })
    .optional(),
}

function isCodeHash(text: string): text is `0x${string}` {
  return /^0x[0-9a-f]{64}$/.test(text)
}

/** A chain with its node, and the gateway's keys, which are the same on every chain. */
export interface ConfiguredChain {
  readonly kind: 'anvil' | 'simulated' | 'rpc'
  readonly name: ChainName
  readonly rpcUrl: string | null
  /** Variable that has, or would have, the node's URL. */
  readonly rpcVariable: string
  /** Private keys: 0x and 64 hex digits, or references. */
  readonly sponsorKey: string | null
  readonly ownerKey: string | null
  /** Key that owned the smart accounts before, or the one that is to. */
  readonly ownerKeyPrevious: string | null
  readonly anvilBinary: string | null
  /** keccak256 of the code that the contracts of x402 may have on public chains. */
  readonly x402Hashes: readonly `0x${string}`[]
}

/** @property chains the default first. @property anchorChain chain on which the decision chain's heads are anchored. */
export interface ChainConfig {
  readonly chains: readonly [ConfiguredChain, ...ConfiguredChain[]]
  readonly anchorChain: ChainName | null
}

interface ChainSettings {
  readonly CHAIN: 'anvil' | 'simulated'
  readonly CHAINS?: readonly string[] | undefined
  readonly CHAIN_RPC_URL?: string | undefined
  readonly CHAIN_SPONSOR_KEY?: string | undefined
  readonly CHAIN_OWNER_KEY?: string | undefined
  readonly CHAIN_OWNER_KEY_PREVIOUS?: string | undefined
  readonly ANVIL_BIN?: string | undefined
  readonly ANCHOR_CHAIN?: ChainName | undefined
  readonly X402_CODE_HASHES?: readonly string[] | undefined
}

export function readChains(settings: ChainSettings & Readonly<Record<string, unknown>>): ChainConfig {
  const [first = DEFAULT_CHAIN, ...others] = settings.CHAINS?.filter(isChainName) ?? []
  const configureChain = (name: ChainName): ConfiguredChain => {
    const own = settings[nameRpcVariable(name)]
    const rpcUrl = typeof own === 'string' ? own : (settings.CHAIN_RPC_URL ?? null)
    return {
      kind: rpcUrl === null ? settings.CHAIN : 'rpc',
      name,
      rpcUrl,
      rpcVariable: settings.CHAIN_RPC_URL === undefined ? nameRpcVariable(name) : 'CHAIN_RPC_URL',
      sponsorKey: settings.CHAIN_SPONSOR_KEY ?? null,
      ownerKey: settings.CHAIN_OWNER_KEY ?? null,
      ownerKeyPrevious: settings.CHAIN_OWNER_KEY_PREVIOUS ?? null,
      anvilBinary: settings.ANVIL_BIN ?? null,
      x402Hashes: settings.X402_CODE_HASHES?.filter(isCodeHash) ?? [],
    }
  }
  return {
    chains: [configureChain(first), ...others.map(configureChain)],
    anchorChain: settings.ANCHOR_CHAIN ?? null,
  }
}

/** One line per contradiction between the chains' variables; empty for a valid configuration. */
export function chainErrors(given: Readonly<Record<string, string | undefined>>): string[] {
  const names = namedChains(given)
  const own = names.map(nameRpcVariable)
  const strangers = rpcVariables.filter((name) => !own.includes(name) && given[name] !== undefined)
  const real = names.filter((name) => !chainFacts(name).isTest)
  const hasGeneral = given.CHAIN_RPC_URL !== undefined
  return [
    hasGeneral
      ? own
          .filter((name) => given[name] !== undefined)
          .map((name) => `CHAIN_RPC_URL: is set beside ${name}; remove one of them`)
      : [],
    strangers.map((name) => `${name}: CHAINS does not name its chain`),
    real.length > 0 && real.length < names.length
      ? `CHAINS: mixes chains with real money (${real.join(', ')}) and test chains`
      : [],
    given.MODE === 'production'
      ? []
      : real.map(
          (name) => `CHAINS: ${name} has real money, which the sandbox never moves; use MODE=production`,
        ),
    hasGeneral && names.length > 1
      ? `CHAIN_RPC_URL: is for one chain, and CHAINS names several; use ${own.join(' and ')}`
      : [],
    hasGeneral && names.length === 1
      ? real.map(
          (name) =>
            `CHAIN_RPC_URL: use ${nameRpcVariable(name)}, so that no node of another chain is taken for one of ${name}`,
        )
      : [],
    given.ANCHOR_CHAIN !== undefined && !names.some((name) => name === given.ANCHOR_CHAIN)
      ? `ANCHOR_CHAIN: ${given.ANCHOR_CHAIN} is not one of CHAINS (${names.join(', ')})`
      : [],
    given.CHAIN === 'simulated'
      ? real.map((name) => `CHAIN: only test chains can be simulated, not ${name}`)
      : [],
  ].flat()
}

/** Variables that have the URLs of the chains' nodes: each chain's own, unless only the general one is set. */
export function nodeVariables(given: Readonly<Record<string, string | undefined>>): string[] {
  const own = namedChains(given).map(nameRpcVariable)
  const [only = ''] = own
  const isGeneral = own.length === 1 && given[only] === undefined && given.CHAIN_RPC_URL !== undefined
  return isGeneral ? ['CHAIN_RPC_URL'] : own
}

function namedChains({ CHAINS = '' }: Readonly<Record<string, string | undefined>>): readonly ChainName[] {
  const named = CHAINS.split(',')
    .map((name) => name.trim())
    .filter(isChainName)
  return named.length === 0 ? [DEFAULT_CHAIN] : [...new Set(named)]
}
