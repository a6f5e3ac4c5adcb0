/** The sandbox's market on each local chain, and the routes that lie: their addresses and interfaces. */
import { parseAbi } from 'viem'
import type { Address } from './chain/port.ts'

/** The last 20 bytes of keccak256 of `bursar sandbox pool` and `bursar sandbox liar`. */
export const sandboxPoolAddress: Address = '0x529e236F8f1b7F36e80E1E01f324c0Af75295009'
export const sandboxLiarAddress: Address = '0x9FA58a9aFD562b28AE7217881F5899573d8dEa48'

/** `contracts/SandboxPool.sol`: the sandbox's market. */
export const poolAbi = parseAbi([
  'function price(address token, uint256 micros)',
  'function prices(address token) view returns (uint256)',
  'function quote(address sell, address buy, uint256 units) view returns (uint256)',
  'function swap(address sell, address buy, uint256 units, uint256 least, address to, uint256 deadline) returns (uint256)',
])

/** `contracts/SandboxLiar.sol`: routes that lie. */
export const liarAbi = parseAbi([
  'function swap(uint8 lie, address pool, address sell, address buy, uint256 units, address victim, address second)',
  'function collect(address token, address owner)',
])

/** Name of the honest route. */
export const HONEST_ROUTE = 'sandbox-pool'

/** Routes that lie, by name, in the order of the contract's enumeration. */
export const lyingRoutes = {
  'other-receiver': 'Buys for somebody else.',
  'worse-amount': 'Keeps a tenth of what it bought.',
  'takes-everything': 'Takes the money and buys nothing.',
  'second-token': 'Tries to take another token of the wallet as well.',
  'trades-before': 'Buys for somebody else with half of the money.',
  'keeps-approval': 'Leaves a part unsold, and hopes to collect it by the approval that it was given.',
} as const
