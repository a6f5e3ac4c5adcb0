/** Configuration of the chain: its name, its node, and the gateway's keys on it. */
import { z } from 'zod'
import { type ChainName, chainFacts, chainNames, isChainName, rpcVariableOf } from '../money/chains.ts'
import { list } from './list.ts'

const privateKey = z.string().regex(/^0x[0-9a-fA-F]{64}$/)
const nodeUrl = z.url({ protocol: /^https?$/, abort: true })

const DEFAULT_CHAIN = 'base-sepolia'

/** Variables with the nodes' URLs, which may contain API keys. */
export const rpcVariables = chainNames.map(rpcVariableOf)

export const chainVariables = {
  CHAIN: z.enum(['anvil', 'simulated']).default('anvil'),
  CHAINS: list
    .superRefine((names, context) => {
      for (const name of names.filter((text) => !isChainName(text)))
        context.addIssue({ code: 'custom', message: `"${name}" is not one of ${chainNames.join(', ')}` })
      if (names.length > 1) context.addIssue({ code: 'custom', message: 'names more than one chain' })
    })
    .optional(),
  CHAIN_RPC_URL: nodeUrl.optional(),
  ...Object.fromEntries(rpcVariables.map((name) => [name, nodeUrl.optional()])),
  CHAIN_SPONSOR_KEY: privateKey.optional(),
  CHAIN_OWNER_KEY: privateKey.optional(),
  ANVIL_BIN: z.string().optional(),
}

export interface ChainConfig {
  readonly chain: {
    readonly kind: 'anvil' | 'simulated' | 'rpc'
    readonly name: ChainName
    readonly rpcUrl: string | null
    /** Variable that has, or would have, the node's URL. */
    readonly rpcVariable: string
    readonly sponsorKey: string | null
    readonly ownerKey: string | null
    readonly anvilBinary: string | null
  }
}

interface ChainSettings {
  readonly CHAIN: 'anvil' | 'simulated'
  readonly CHAINS?: readonly string[] | undefined
  readonly CHAIN_RPC_URL?: string | undefined
  readonly CHAIN_SPONSOR_KEY?: string | undefined
  readonly CHAIN_OWNER_KEY?: string | undefined
  readonly ANVIL_BIN?: string | undefined
}

export function chainOf(settings: ChainSettings & Readonly<Record<string, unknown>>): ChainConfig {
  const name = settings.CHAINS?.find(isChainName) ?? DEFAULT_CHAIN
  const own = settings[rpcVariableOf(name)]
  const rpcUrl = typeof own === 'string' ? own : (settings.CHAIN_RPC_URL ?? null)
  return {
    chain: {
      kind: rpcUrl === null ? settings.CHAIN : 'rpc',
      name,
      rpcUrl,
      rpcVariable: settings.CHAIN_RPC_URL === undefined ? rpcVariableOf(name) : 'CHAIN_RPC_URL',
      sponsorKey: settings.CHAIN_SPONSOR_KEY ?? null,
      ownerKey: settings.CHAIN_OWNER_KEY ?? null,
      anvilBinary: settings.ANVIL_BIN ?? null,
    },
  }
}

/** One line per contradiction between the chain's variables; empty for a valid configuration. */
export function chainErrors(given: Readonly<Record<string, string | undefined>>): string[] {
  const name = namedChain(given)
  const own = rpcVariableOf(name)
  const strangers = rpcVariables.filter((variable) => variable !== own && given[variable] !== undefined)
  const isReal = !chainFacts(name).isTest
  return [
    given[own] !== undefined && given.CHAIN_RPC_URL !== undefined
      ? `CHAIN_RPC_URL: is set beside ${own}; remove one of them`
      : [],
    strangers.map((variable) => `${variable}: CHAINS does not name its chain`),
    isReal && given.MODE !== 'production'
      ? `CHAINS: ${name} has real money, which the sandbox never moves; use MODE=production`
      : [],
    isReal && given.CHAIN_RPC_URL !== undefined
      ? `CHAIN_RPC_URL: use ${own}, so that no node of another chain is taken for one of ${name}`
      : [],
    given.CHAIN === 'simulated' && name !== DEFAULT_CHAIN
      ? `CHAIN: the simulated chain is ${DEFAULT_CHAIN}, not ${name}`
      : [],
  ].flat()
}

/** Variable that has the URL of the chain's node: the chain's own, unless only the general one is set. */
export function nodeVariable(given: Readonly<Record<string, string | undefined>>): string {
  const own = rpcVariableOf(namedChain(given))
  return given[own] === undefined && given.CHAIN_RPC_URL !== undefined ? 'CHAIN_RPC_URL' : own
}

function namedChain({ CHAINS = '' }: Readonly<Record<string, string | undefined>>): ChainName {
  return (
    CHAINS.split(',')
      .map((name) => name.trim())
      .find(isChainName) ?? DEFAULT_CHAIN
  )
}
