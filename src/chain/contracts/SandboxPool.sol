// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IPoolToken {
    function transfer(address to, uint256 units) external returns (bool);
    function transferFrom(address from, address to, uint256 units) external returns (bool);
}

/// @notice A constant-product market of the sandbox for pairs of its tokens, whose liquidity is minted to it. Reserves start at
/// `DEPTH` of each side, valued at the sandbox's reference prices, and move with every swap. Fee: 5 basis points.
contract SandboxPool {
    /// @dev Value of each side of a pair at its start, in millionths of a US dollar.
    uint256 public constant DEPTH = 50_000_000_000_000;
    uint256 public constant FEE_BPS = 5;

    mapping(address token => uint256 micros) public prices;
    mapping(address token => mapping(address other => int256 units)) private _moved;

    event Priced(address indexed token, uint256 micros);
    event Sold(address indexed sell, address indexed buy, uint256 units, uint256 bought, address to);

    error Expired();
    error TooLittle(uint256 bought);
    error Unpriced();

    /// @notice Sets the price of a whole token (10^6 units), once.
    function price(address token, uint256 micros) external {
        require(prices[token] == 0 && micros > 0, Unpriced());
        prices[token] = micros;
        emit Priced(token, micros);
    }

    /// @notice Amount of `buy` for `units` of `sell` at the present reserves.
    function quote(address sell, address buy, uint256 units) public view returns (uint256) {
        uint256 into = _reserveOf(sell, buy);
        uint256 from = _reserveOf(buy, sell);
        uint256 net = units * (10_000 - FEE_BPS);
        return (net * from) / (into * 10_000 + net);
    }

    /// @notice Takes `units` of `sell` from the caller and pays `to`.
    function swap(address sell, address buy, uint256 units, uint256 least, address to, uint256 deadline)
        external
        returns (uint256 bought)
    {
        require(block.timestamp <= deadline, Expired());
        bought = quote(sell, buy, units);
        require(bought >= least, TooLittle(bought));
        _moved[sell][buy] += int256(units);
        _moved[buy][sell] -= int256(bought);
        // Tokens without a return value revert by themselves.
        _pay(sell, abi.encodeCall(IPoolToken.transferFrom, (msg.sender, address(this), units)));
        _pay(buy, abi.encodeCall(IPoolToken.transfer, (to, bought)));
        emit Sold(sell, buy, units, bought, to);
    }

    function _reserveOf(address token, address other) private view returns (uint256) {
        require(prices[token] > 0 && prices[other] > 0, Unpriced());
        return uint256(int256((DEPTH * 1_000_000) / prices[token]) + _moved[token][other]);
    }

    function _pay(address token, bytes memory data) private {
        (bool success, bytes memory answer) = token.call(data);
        require(success && (answer.length == 0 || abi.decode(answer, (bool))), Unpriced());
    }
}
