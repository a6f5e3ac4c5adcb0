/** Short forms of names, ids and addresses. */
import { digits } from './digits.ts'

/** `Shopping Claude` → `SC`. */
export function extractInitials(name: string): string {
  const words = name
    .trim()
    .split(/[\s._-]+/)
    .filter((word) => word !== '')
  const [first = '?', second] = words
  const letters = second === undefined ? [...first].slice(0, 2) : [[...first][0], [...second][0]]
  return letters.join('').toUpperCase()
}

/** One of four colours, the same for the same id. */
export function chooseHue(id: string): 1 | 2 | 3 | 4 {
  const hues = [1, 2, 3, 4] as const
  const sum = [...id].reduce((total, letter) => total + (letter.codePointAt(0) ?? 0), 0)
  return hues[sum % hues.length] ?? 1
}

/** `0x71C7…9A3f`. Only where no money is approved: there the address stands in full. */
export function shortAddress(address: string): string {
  return isAddress(address) ? `${address.slice(0, 6)}…${address.slice(-4)}` : address
}

/** A payee on one line: the short form of an address, the host of a seller, otherwise the name as it is. */
export function nameOfPayee(payee: string): string {
  return shortAddress(payee.replace(/^https:\/\/(?=[^/]+$)/, ''))
}

export function isAddress(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text)
}

/** `2 agents`, `1 agent`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString(undefined, digits)} ${number === 1 ? one : many}`
}

const chains: Readonly<Record<string, string>> = {
  'base-sepolia': 'Base Sepolia',
  'arbitrum-sepolia': 'Arbitrum Sepolia',
  base: 'Base',
  arbitrum: 'Arbitrum',
  optimism: 'Optimism',
  polygon: 'Polygon',
  ethereum: 'Ethereum',
  solana: 'Solana',
}

/** `base-sepolia` → `Base Sepolia`. */
export function nameOfChain(chain: string): string {
  return chains[chain] ?? chain
}
